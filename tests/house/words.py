"""Vocabulary test: words that no text may use, and words that no name in our code may use.

"told" and the like are private vocabulary: a reader who searches for the field's word must find it. The second kind is
fine English and too vague as a name: `place` is a slot, a location, an endpoint or an index; `helper` says nothing.
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
    "makes no sense": re.compile(r"(?<![a-z])makes?[ _]no[ _]sense(?![a-z])", re.IGNORECASE),
    "is no JSON": re.compile(r"(?<![a-z])is no (?:sound )?(?:JSON|HTTP|base64)(?![a-z])", re.IGNORECASE),
}
AS_PART_OF_NAMES = ("place", "nobody", "manager", "helper", "util", "impl")
AS_NAMES = ("given", "asked", "wanted", "found", "made", "left")
TEXTS = (".py", ".pyi", ".md", ".toml", ".c", ".h", ".proto", ".sh", "")
"""The suffixes of the files that we write ourselves; the empty one is that of the Makefile."""

_HERE = Path(__file__).parent
_OLD_NAMES = Path("docs", "migration.md")
"""The table of names that were replaced is not searched."""
_FIELD_TERMS = re.compile("in_place")
"""Parts of names that are the field's own, although they contain a banned word."""
_SEGMENT = re.compile(r"[A-Z]?[a-z]+|[A-Z]+")


def texts(root: Path = ROOT) -> Iterator[Path]:
    """The files that are searched for words: all that we write, except these rules and their limits."""
    yield from (path for path in sorted(root.iterdir()) if path.is_file() and path.suffix == ".md")
    for folder in (*GROUPS, "tests", "docs", "bench", "examples"):
        for path in sorted((root / folder).rglob("*")):
            hidden = any(part.startswith((".", "__")) for part in path.relative_to(root).parts[:-1])
            if (
                path.suffix in TEXTS
                and path.is_file()
                and not hidden
                and path.parent != _HERE
                and path != root / _OLD_NAMES
            ):
                yield path


def beside_the_packages(root: Path = ROOT) -> Iterator[Module]:
    """The Python files of tests, benchmarks and examples, whose names are checked too."""
    for path in texts(root):
        parts = path.relative_to(root).parts
        if path.suffix == ".py" and ("tests" in parts or parts[0] in ("bench", "examples")):
            yield Module(path.relative_to(root).as_posix(), path)


def in_texts(paths: Iterable[Path], root: Path = ROOT) -> dict[str, list[str]]:
    """Where each of the words stands in texts and file names, as `path:line`."""
    hits: dict[str, list[str]] = {word: [] for word in IN_TEXT}
    for path in paths:
        text, name = path.read_text(errors="replace"), path.relative_to(root).as_posix()
        for word, pattern in IN_TEXT.items():
            hits[word] += [f"{name} (its name)"] * bool(pattern.search(path.name))
            hits[word] += [f"{name}:{text.count(chr(10), 0, hit.start()) + 1}" for hit in pattern.finditer(text)]
    return hits


def as_names(modules: Iterable[Module]) -> dict[str, list[str]]:
    """Where the modules define each of the names, as `module:line`."""
    hits: dict[str, list[str]] = {word: [] for word in (*AS_PART_OF_NAMES, *AS_NAMES)}
    for module in modules:
        for name, line in definitions(module.tree):
            plain = name.strip("_").lower()
            segments = {segment.lower().removesuffix("s") for segment in _SEGMENT.findall(_FIELD_TERMS.sub("", name))}
            for word in hits:
                if plain == word or (word in AS_PART_OF_NAMES and word in segments):
                    hits[word].append(f"{module.name}:{line} {name}")
    return hits


def definitions(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """The names that a file defines, each with its line: functions, classes, parameters, variables, attributes."""
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield name, node.lineno
            case ast.arg(arg=name) | ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
                yield name, node.lineno
