"""Parses the repository's own Python, for tests that look at it.

Invariant: no garbage is collected meanwhile. What is collected may log a traceback, whose lines Python 3.11 parses as
well, and a parser that is called while it is at work fails with "AST constructor recursion depth mismatch".
"""

from __future__ import annotations

import ast
import gc


def parse_python(source: str) -> ast.Module:
    """Return the syntax tree of a module."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        return ast.parse(source)
    finally:
        if was_enabled:
            gc.enable()
