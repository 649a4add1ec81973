"""The rule of where wording is asserted: in one test file, that of the code that makes the message.

Tests elsewhere assert the type of an error, its status and the names in it, so that a better sentence changes one file.
"""

import ast
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping

from .workspace import Module

WORDS = 4
"""So many words in a row are wording; names, numbers, paths, values in quotes and ends of sentences end a row."""

_WORD = re.compile(r"[(\[]?([A-Za-z]|[A-Za-z][a-z]+(?:['-][a-z]+)*)([.,;:!?)\]]*)")

_OF_PATTERNS = str.maketrans("", "", "\\^$")


def repeated(modules: Iterable[Module], files: Iterable[Module]) -> list[str]:
    """The messages that the assertions of several test files repeat: the words, and the files with their lines.

    A row of words stands for a message if one text of the sources has it; more may share a phrase ("it must be a"), and
    rows that no text has come from fakes, from libraries and from Python.
    """
    messages = _messages(modules)
    asserted: dict[str, dict[str, tuple[int, str]]] = defaultdict(dict)
    for file in files:
        for text, line in _assertions(file.tree):
            for row in _rows(text):
                if row in messages:
                    asserted[messages[row]].setdefault(file.name, (line, row))
    return sorted(
        f"{next(iter(where.values()))[1]}: {' '.join(f'{name}:{line}' for name, (line, _) in where.items())}"
        for where in asserted.values()
        if len(where) > 1
    )


def _messages(modules: Iterable[Module]) -> Mapping[str, str]:
    """The rows of words that exactly one text of the modules has, each with the module and the line of that text."""
    holders: dict[str, set[str]] = defaultdict(set)
    for module in modules:
        for node in _outer_texts(module.tree):
            for text, _ in _texts(node):
                for row in _rows(text):
                    holders[row].add(f"{module.name}:{node.lineno}:{node.col_offset}")
    return {row: next(iter(where)) for row, where in holders.items() if len(where) == 1}


def _outer_texts(tree: ast.AST) -> Iterator[ast.Constant | ast.JoinedStr]:
    """The texts of a module but for docstrings; the parts of an f-string are one text."""
    for node in ast.iter_child_nodes(tree):
        match node:
            case ast.Expr(value=ast.Constant()):
                pass
            case ast.JoinedStr() | ast.Constant(value=str()):
                yield node
            case _:
                yield from _outer_texts(node)


def _assertions(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """The texts of assertions: of `assert`, of `match=`, and of the tables that tests are parametrised with."""
    for node in ast.walk(tree):
        match node:
            case ast.Assert(test=test):
                yield from _texts(test)
            case ast.keyword(arg="match", value=value):
                yield from _texts(value)
            case ast.Call(func=ast.Attribute(attr="parametrize"), args=[_, table, *_]):
                yield from _texts(table)


def _texts(tree: ast.AST) -> Iterator[tuple[str, int]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value, node.lineno


def _rows(text: str) -> Iterator[str]:
    """All rows of so many words in a text, without the characters that only patterns have."""
    words: list[str] = []
    for part in text.translate(_OF_PATTERNS).split():
        word = _WORD.fullmatch(part)
        words = [*words, word[1].lower()] if word is not None else []
        if len(words) >= WORDS:
            yield " ".join(words[-WORDS:])
        if word is not None and word[2].strip(",)]"):
            words = []
