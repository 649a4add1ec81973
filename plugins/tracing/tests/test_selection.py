"""What the settings of the trace extension may be changed to."""

from typing import Any

import pytest

from naiad.errors import InvalidArgumentError, UnsupportedError
from naiad_tracing.selection import Selection, read_changes, read_levels

FIXED = {"trace_mode": "triton", "trace_file": "t.json"}


def test_a_selection_is_reported_as_texts_with_a_list_of_levels() -> None:
    assert Selection(("TIMESTAMPS",), 5, 3, 2).as_settings() == {
        "trace_level": ("TIMESTAMPS",),
        "trace_rate": "5",
        "trace_count": "3",
        "log_frequency": "2",
    }


def test_no_level_is_reported_as_off() -> None:
    assert Selection().as_settings()["trace_level"] == ("OFF",)


@pytest.mark.parametrize(
    ("words", "levels"),
    [
        (["OFF"], ()),
        (["TENSORS", "TIMESTAMPS"], ("TIMESTAMPS", "TENSORS")),
        (["TENSORS", "TENSORS"], ("TENSORS",)),
    ],
)
def test_levels_are_a_set_of_words(words: list[str], levels: tuple[str, ...]) -> None:
    assert read_levels(words) == levels


@pytest.mark.parametrize(
    ("changes", "read"),
    [
        ({"trace_rate": ["2"], "trace_count": ["-1"]}, {"rate": 2, "count": -1}),
        ({"trace_rate": ["0"]}, {"rate": 0}),
        ({"trace_level": ["OFF"]}, {"levels": ()}),
        ({"log_frequency": None, "trace_count": []}, {"log_frequency": None, "count": None}),
        ({"trace_mode": ["triton"]}, {}),
    ],
)
def test_changes_are_read(changes: dict[str, Any], read: dict[str, Any]) -> None:
    assert read_changes(changes, FIXED) == read


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"trace_level": ["OFF", "TENSORS"]}, "Expect only one trace level 'OFF' is specified"),
        ({"trace_level": ["TIMESTAMP"]}, "unknown trace_level 'TIMESTAMP'"),
        ({"trace_rate": ["x"]}, "Unable to parse 'trace_rate', got: x"),
        ({"trace_rate": [""]}, "Unable to parse 'trace_rate', got: "),
        ({"trace_rate": ["5x"]}, "Unable to parse 'trace_rate', got: 5x"),
        ({"trace_rate": ["-1"]}, "Unable to parse 'trace_rate'. Expecting value >= 0, got:-1"),
        ({"trace_rate": ["4294967296"]}, "Unable to parse 'trace_rate', value is out of range [ 0, 4294967295 ]"),
        ({"trace_count": ["-2"]}, "Unable to parse 'trace_count'. Expecting value >= -1, got:-2"),
        ({"log_frequency": ["\u00b2"]}, "Unable to parse 'log_frequency'"),
        ({"trace_rate": ["1", "2"]}, "expect one value for 'trace_rate', got 2"),
        ({"trace_rates": ["1"]}, "unknown trace setting 'trace_rates'"),
    ],
)
def test_what_is_invalid_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidArgumentError) as error:
        read_changes(changes, FIXED)

    assert message in str(error.value)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"trace_file": ["other"]}, "trace file location can not be updated through network protocol"),
        ({"trace_file": ["other"]}, "only --trace-config triton,file=FILE sets it"),
        ({"trace_file": None}, "trace file location can not be updated through network protocol"),
        ({"trace_mode": ["opentelemetry"]}, "'trace_mode' is 'triton' and can not be updated"),
        ({"trace_mode": None}, "'trace_mode' is 'triton' and can not be updated"),
    ],
)
def test_what_only_the_command_line_sets_is_not_offered(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(UnsupportedError) as error:
        read_changes(changes, FIXED)

    assert message in str(error.value)
