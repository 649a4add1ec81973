"""Where two answers differ: status, headers, the shape of the JSON, its values where they are determined, and bytes."""

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from .answers import Answer, Case

ERRORS = (".error", ".error_message")
"""Where the texts of errors stand: they are ours to word, so only that there is one is compared."""

_ORDERED = (".inputs", ".outputs", ".input", ".output")
"""Lists of named things whose order counts; others are matched by name and version."""

_LONGEST = 100
_LARGEST = 3.4028234e38
"""Numbers from here up may be too large for FP32."""


@dataclass(frozen=True, slots=True)
class Difference:
    """One place where the servers differ; `key` names it from run to run: the case's key, a colon, and the place."""

    key: str
    ours: str
    theirs: str


def differences(case: Case, ours: Answer, theirs: Answer) -> list[Difference]:
    """All places where our answer to that case is another one than theirs; only the status where that differs."""
    if ours.status != theirs.status:
        return [Difference(f"{case.key}:status", _summary(ours), _summary(theirs))]
    results: list[tuple[str, Any, Any]] = []
    for name in sorted(ours.headers.keys() | theirs.headers.keys()):
        if ours.headers.get(name) != theirs.headers.get(name):
            results.append((name, ours.headers.get(name), theirs.headers.get(name)))
    results += _of_documents("$", ours.document, theirs.document, case.any_value)
    if ours.content != theirs.content:
        results.append(("content", ours.content, theirs.content))
    return [Difference(f"{case.key}:{path}", _text(first), _text(second)) for path, first, second in results]


def _of_documents(path: str, ours: Any, theirs: Any, any_value: tuple[str, ...]) -> Iterator[tuple[str, Any, Any]]:
    if isinstance(ours, dict) and isinstance(theirs, dict):
        for name in sorted(ours.keys() | theirs.keys()):
            inner = f"{path}.{name}"
            if name in ours and name in theirs:
                yield from _of_documents(inner, ours[name], theirs[name], any_value)
            else:
                yield inner, ours.get(name, "(absent)"), theirs.get(name, "(absent)")
    elif _have_names(ours) and _have_names(theirs) and not path.endswith(_ORDERED):
        yield from _of_documents(path, _by_name(ours), _by_name(theirs), any_value)
    elif isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        for index, (first, second) in enumerate(zip(ours, theirs, strict=True)):
            yield from _of_documents(f"{path}[{index}]", first, second, any_value)
    elif type(ours) is not type(theirs) or not (_same(ours, theirs) or _may_differ(path, ours, theirs, any_value)):
        yield path, ours, theirs


def _have_names(value: Any) -> bool:
    """Whether it is a list of objects that each have a name of their own."""
    if not (isinstance(value, list) and value and all(isinstance(each, dict) and "name" in each for each in value)):
        return False
    return len(_by_name(value)) == len(value)


def _by_name(listed: list[Any]) -> dict[str, Any]:
    return {" ".join(str(each[key]) for key in ("name", "version") if key in each): each for each in listed}


def _same(ours: Any, theirs: Any) -> bool:
    """Equal; of numbers with a point the same FP32 is enough: a server may write it with as many digits as it likes."""
    if not isinstance(ours, float) or repr(ours) == repr(theirs):
        return bool(ours == theirs or repr(ours) == repr(theirs))
    return max(abs(ours), abs(theirs)) < _LARGEST and struct.pack("<f", ours) == struct.pack("<f", theirs)


def _may_differ(path: str, ours: Any, theirs: Any, any_value: tuple[str, ...]) -> bool:
    if path.endswith(".error_message") and bool(ours) != bool(theirs):
        return False
    return path.endswith(ERRORS) or any(fnmatchcase(path, pattern.replace("[", "[[]")) for pattern in any_value)


def _summary(answer: Answer) -> str:
    error = answer.document.get("error") if isinstance(answer.document, dict) else None
    return f"{answer.status} {error!r}" if error else answer.status


def _text(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 20]}… ({len(text)} characters)"
