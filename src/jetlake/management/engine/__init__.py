"""The engine as management sees it.

- `protocols`  what of the engine is needed, for type checkers
- `failures`   what the engine cannot do, as an answer
"""
