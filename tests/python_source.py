"""Parses the repository's own Python, for tests that look at it.

Invariant: no garbage is collected meanwhile. What is collected may log a traceback, whose lines Python 3.11 parses as
well, and a parser that is called while it is at work fails with "AST constructor recursion depth mismatch".
"""

from __future__ import annotations

import ast
import functools
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


@functools.cache
def nodes_of(source: str) -> tuple[ast.AST, ...]:
    """Return all nodes of a module, as `ast.walk` does: several tests look at the same, and nobody changes them.

    Finding them takes many times as long as parsing.
    """
    return tuple(ast.walk(parse_python(source)))
