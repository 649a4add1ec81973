"""Every option, RPC, route, name of `pb_utils` and error has a row that names a test; it is there and has the words."""

import ast
import inspect
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import triton_python_backend_utils as pb_utils
from naiad_grpc.messages import rpcs

from .coverage_of_spec import MODEL_API, OPTIONS, PATHS, RPCS
from .end_to_end.test_restricted_apis import PATHS as SERVED
from .phrases_of_spec import IN_OTHER_WORDS, IN_THESE_WORDS
from .test_triton_options import TRITON

ROOT = Path(__file__).parents[1]


def test_every_option_of_triton_has_a_row() -> None:
    assert set(OPTIONS) == set(TRITON)


def test_every_rpc_has_a_row() -> None:
    assert set(RPCS) == {rpc.name for rpc in rpcs()}


def test_every_route_has_a_row() -> None:
    served = {path.replace("/versions/{version}", "") for paths in SERVED.values() for path in paths}
    served = {path.replace("/{repository}/", "/") for path in served}

    assert set(PATHS) == served


def test_every_name_that_models_import_has_a_row() -> None:
    assert {name for names in MODEL_API.values() for name in names} == set(_names_that_models_import())


def test_an_error_has_one_row() -> None:
    phrases = [each for rows in (IN_THESE_WORDS, IN_OTHER_WORDS) for row in rows.values() for each in row]

    assert len(phrases) == len(set(phrases))


@pytest.mark.parametrize("test", IN_THESE_WORDS)
def test_a_test_has_words_of_each_error_of_its_row(test: str) -> None:
    texts = [words_of(text) for text in texts_of(test)]

    missing = [
        phrase
        for phrase in IN_THESE_WORDS[test]
        if not any(f" {row} " in text for row in rows_of(phrase) for text in texts)
    ]

    assert missing == []


@pytest.mark.parametrize(
    ("phrase", "text", "has"),
    [
        ("input '<x>' came late to model '<m>'", "input 'A' came late to the others", True),
        ("input '<x>' came late to model '<m>'", "input 'A' came to model 'm'", False),
        ("invalid '<k>'", r"invalid 'log_info'\.", True),
        ("expected N bytes of <f>", "of 5 bytes", False),
    ],
)
def test_three_words_in_a_row_are_words_of_an_error(phrase: str, text: str, has: bool) -> None:
    assert any(f" {row} " in words_of(text) for row in rows_of(phrase)) is has


TESTS = {*OPTIONS.values(), *RPCS.values(), *PATHS.values(), *MODEL_API, *IN_THESE_WORDS, *IN_OTHER_WORDS}


@pytest.mark.parametrize("test", sorted(TESTS))
def test_a_test_that_a_row_names_is_there(test: str) -> None:
    path, _, name = test.partition("::")

    assert re.search(rf"^(async )?def {name}\(", (ROOT / path).read_text(), re.MULTILINE)


_VALUE = re.compile(r"<[^<>]*>|…|\.\.\.|\b[A-Z]\b|'[^' ]*'|\d+")
_WORD = re.compile(r"[a-z_]+(?:['-][a-z]+)*")


def words_of(text: str) -> str:
    """The words of a text between spaces, without the values in it."""
    return f" {' '.join(_WORD.findall(_VALUE.sub(' ', text).lower()))} "


def rows_of(phrase: str) -> list[str]:
    """Each three words that follow one another in a phrase; all that it has where it has fewer."""
    words = words_of(phrase).split()
    size = min(3, len(words))
    return [" ".join(words[start : start + size]) for start in range(len(words) - size + 1)]


def texts_of(test: str) -> Iterator[str]:
    """The texts in a test, in its decorators, and in the constants of its file that it names."""
    path, _, name = test.partition("::")
    tree = ast.parse((ROOT / path).read_text())
    constants: dict[str, ast.stmt] = {}
    for statement in tree.body:
        if isinstance(statement, ast.Assign | ast.AnnAssign):
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            constants |= {target.id: statement for target in targets if isinstance(target, ast.Name)}
    (function,) = (each for each in tree.body if getattr(each, "name", "") == name)
    named = (constants.get(each.id) for each in ast.walk(function) if isinstance(each, ast.Name))
    for statement in (function, *filter(None, named)):
        texts = (each.value for each in ast.walk(statement) if isinstance(each, ast.Constant))
        yield from (text.replace("\\", "") for text in texts if isinstance(text, str))


def _names_that_models_import() -> Iterator[str]:
    for name in pb_utils.__all__:
        yield name
        kind = getattr(pb_utils, name)
        if inspect.isclass(kind) and not issubclass(kind, int | Exception):
            yield from (f"{name}.{member}" for member in vars(kind) if not member.startswith("_"))
