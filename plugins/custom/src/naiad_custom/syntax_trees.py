"""Syntax trees of model files, parsed one at a time."""

import ast
import threading
from pathlib import Path

_PARSING = threading.Lock()
_TRIES = 5


def syntax_tree(path: Path) -> ast.Module:
    """The syntax tree of a file. Raises OSError, SyntaxError, ValueError, RecursionError and MemoryError.

    CPython 3.11 counts the depth of all trees that are made at the same time together (its issue 106905), and raises
    SystemError where threads parse at once: models that load in parallel take turns, other code of the process may
    still be in the way, and parsing is tried again.
    """
    source = path.read_bytes()
    for _ in range(_TRIES - 1):
        try:
            with _PARSING:
                return ast.parse(source)
        except SystemError:
            continue
    with _PARSING:
        return ast.parse(source)
