"""Every option, RPC, route, name of `pb_utils` and error has a row that names a test, and the test is there."""

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


TESTS = {*OPTIONS.values(), *RPCS.values(), *PATHS.values(), *MODEL_API, *IN_THESE_WORDS, *IN_OTHER_WORDS}


@pytest.mark.parametrize("test", sorted(TESTS))
def test_a_test_that_a_row_names_is_there(test: str) -> None:
    path, _, name = test.partition("::")

    assert re.search(rf"^(async )?def {name}\(", (ROOT / path).read_text(), re.MULTILINE)


def _names_that_models_import() -> Iterator[str]:
    for name in pb_utils.__all__:
        yield name
        kind = getattr(pb_utils, name)
        if inspect.isclass(kind) and not issubclass(kind, int | Exception):
            yield from (f"{name}.{member}" for member in vars(kind) if not member.startswith("_"))
