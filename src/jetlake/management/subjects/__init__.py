"""Names and subjects: which are legal, and which overlap.

- `names`      names of streams and consumers, subjects, and the short hash
- `index`      overlaps among many subjects
- `taken`      which subjects are taken, and by whom
- `transform`  what a transform means, and which ones are legal
"""
