"""Words that the house does not use: as whole words of any text, or as names that our code defines.

"told" and the like are private vocabulary: a reader who searches for the field's word must find it. The second kind are
fine English, and say too little as the name of a thing: `place` is a slot, a location, an endpoint or an index.
"""

import ast
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from .workspace import GROUPS, ROOT, Module

IN_TEXT = {
    "told": re.compile(r"(?<![a-z])told(?![a-z])", re.IGNORECASE),
    "tell_*": re.compile(r"(?<![A-Za-z])_?tell_\w+"),
    "whoever": re.compile(r"(?<![a-z])whoever(?![a-z])", re.IGNORECASE),
}
AS_PART_OF_NAMES = ("place", "nobody")
AS_NAMES = ("given", "asked", "wanted", "found", "made", "left")
TEXTS = (".py", ".pyi", ".md", ".toml", ".c", ".h", ".proto", ".sh", "")
"""The suffixes of the files that we write ourselves; the empty one is that of the Makefile."""

_HERE = Path(__file__).parent
_SEGMENT = re.compile(r"[A-Z]?[a-z]+|[A-Z]+")


def texts(root: Path = ROOT) -> Iterator[Path]:
    """The files that are searched for words: all that we write, except these rules themselves."""
    yield from (path for path in sorted(root.iterdir()) if path.is_file() and path.suffix in (".md", ".toml"))
    for folder in (*GROUPS, "tests", "docs", "bench", "examples"):
        for path in sorted((root / folder).rglob("*")):
            hidden = any(part.startswith((".", "__")) for part in path.relative_to(root).parts[:-1])
            if path.suffix in TEXTS and path.is_file() and not hidden and path.parent != _HERE:
                yield path


def in_texts(paths: Iterable[Path], root: Path = ROOT) -> dict[str, list[str]]:
    """Where each of the words stands in texts and file names, as `path:line`."""
    found: dict[str, list[str]] = {word: [] for word in IN_TEXT}
    for path in paths:
        text, name = path.read_text(errors="replace"), path.relative_to(root).as_posix()
        for word, pattern in IN_TEXT.items():
            found[word] += [f"{name} (its name)"] * bool(pattern.search(path.name))
            found[word] += [f"{name}:{text.count(chr(10), 0, hit.start()) + 1}" for hit in pattern.finditer(text)]
    return found


def as_names(modules: Iterable[Module]) -> dict[str, list[str]]:
    """Where the modules define each of the names, as `module:line`."""
    found: dict[str, list[str]] = {word: [] for word in (*AS_PART_OF_NAMES, *AS_NAMES)}
    for module in modules:
        for name, line in definitions(module.tree):
            plain = name.strip("_").lower()
            segments = {segment.lower().removesuffix("s") for segment in _SEGMENT.findall(name)}
            for word in found:
                if plain == word or (word in AS_PART_OF_NAMES and word in segments):
                    found[word].append(f"{module.name}:{line} {name}")
    return found


def definitions(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """The names that a file defines, each with its line: functions, classes, parameters, variables, attributes."""
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield name, node.lineno
            case ast.arg(arg=name) | ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
                yield name, node.lineno
