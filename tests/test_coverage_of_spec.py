"""Every option, RPC and route has a row that names a test, and the test is there."""

import re
from pathlib import Path

import pytest

from naiad_grpc.messages import rpcs

from .coverage_of_spec import OPTIONS, PATHS, RPCS
from .end_to_end.test_restricted_apis import PATHS as SERVED
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


@pytest.mark.parametrize("test", sorted({*OPTIONS.values(), *RPCS.values(), *PATHS.values()}))
def test_a_test_that_a_row_names_is_there(test: str) -> None:
    path, _, name = test.partition("::")

    assert re.search(rf"^(async )?def {name}\(", (ROOT / path).read_text(), re.MULTILINE)
