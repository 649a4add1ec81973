"""Every row of the table of HTTP/2 names tests that are there."""

import re
from pathlib import Path

import pytest

from naiad_grpc import options

from .coverage_of_http2 import ATTACKS, DUTIES, OPTIONS, ORACLES

FOLDER = Path(__file__).parent
TABLES = (DUTIES, ATTACKS, OPTIONS, ORACLES)
NAMED = sorted({name for rows in TABLES for names in rows.values() for name in names})


@pytest.mark.parametrize("name", [name for name in NAMED if not name.startswith("none: ")])
def test_a_test_that_a_row_names_is_there(name):
    path, _, function = name.partition("::")

    assert re.search(rf"^ *def {function}\(", (FOLDER / path).read_text(), re.MULTILINE)


def test_every_row_has_a_test_or_a_reason():
    assert all(names for rows in TABLES for names in rows.values())


def test_every_option_has_a_row():
    assert set(OPTIONS) == {option.name for option in options.OPTIONS}
