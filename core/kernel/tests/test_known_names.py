"""Unknown parameters and settings of backends: misspelt ones are errors, others are left alone."""

import logging
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from naiad.backend import ModelContext
from naiad_config.text import parse_text
from naiad_kit.backends.parameters import KnownNames

ABACUS = KnownNames(
    "Abacus", ("ROW_COUNT", "BEAD_COLOUR"), settings=("bead-count",), old=("ROWS_NUM",), prefixes=("WOOD.",)
)
LOWER = KnownNames("Slide Rule", ("scale_count",))


def context(*keys: str, **settings: str) -> ModelContext:
    written = "".join(f'parameters {{ key: "{key}" value {{ string_value: "1" }} }}' for key in keys)
    config = parse_text(f'name: "m" {written}')
    return ModelContext(config, 1, Path(), Path(), {key.replace("_", "-"): value for key, value in settings.items()})


def refused(names: KnownNames, of: ModelContext) -> list[str]:
    return [str(problem) for problem in names.mistakes(of.config, of.settings)]


def warned(names: KnownNames, of: ModelContext, caplog: pytest.LogCaptureFixture) -> list[str]:
    with caplog.at_level(logging.WARNING):
        names.warn_of_unread(of)
    return [record.getMessage() for record in caplog.records]


@pytest.mark.parametrize("key", ["ROW_COUNTS", "ROW_CONT", "ROW_KOUNT", "ORW_COUNT", "ROW_COUN"])
def test_one_slip_of_the_finger_is_an_error(key: str) -> None:
    assert refused(ABACUS, context(key)) == [
        f"parameters[{key}]: Abacus has no parameter '{key}' (did you mean 'ROW_COUNT'?)"
    ]


def test_one_slip_in_an_old_name_or_in_a_setting_is_an_error_too() -> None:
    assert refused(ABACUS, context("ROW_NUM", bead_cuont="3")) == [
        "parameters[ROW_NUM]: Abacus has no parameter 'ROW_NUM' (did you mean 'ROWS_NUM'?)",
        "backend-config: the backend for Abacus has no setting 'bead-cuont' (did you mean 'bead-count'?)",
    ]


@pytest.mark.parametrize("key", ["row_count", "ROWS_COUNTED", "Row-Count"])
def test_what_is_like_a_known_name_is_a_warning_with_it(key: str, caplog: pytest.LogCaptureFixture) -> None:
    of = context(key)

    assert refused(ABACUS, of) == []
    assert warned(ABACUS, of, caplog) == [f"Abacus has no parameter '{key}'; did you mean 'ROW_COUNT'?"]


def test_capitals_are_warned_about_where_all_names_of_the_framework_are_in_capitals(
    caplog: pytest.LogCaptureFixture,
) -> None:
    of = context("SPEED", "owner")

    assert refused(ABACUS, of) == []
    assert warned(ABACUS, of, caplog) == ["Abacus has no parameter 'SPEED'; known are ROW_COUNT, BEAD_COLOUR"]
    assert len(warned(LOWER, of, caplog)) == 1  # nothing more than before


def test_a_setting_that_is_not_known_is_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    of = context(colour="red", default_max_batch_size="2", backend_directory="/b", bead_count="3")

    assert refused(ABACUS, of) == []
    assert warned(ABACUS, of, caplog) == [
        "the backend for Abacus has no setting 'colour'; known are bead-count, default-max-batch-size"
    ]


def test_known_names_old_names_and_what_is_handed_on_are_left_alone(caplog: pytest.LogCaptureFixture) -> None:
    of = context("ROW_COUNT", "ROWS_NUM", "WOOD.KIND", "execute_on")

    assert (refused(ABACUS, of), warned(ABACUS, of, caplog)) == ([], [])


@given(st.text("AB_", min_size=1, max_size=6), st.text("AB_", min_size=1, max_size=6))
def test_a_slip_is_one_step_of_damerau_and_levenshtein(written: str, meant: str) -> None:
    letters = "AB_"
    one_away = {meant[:at] + each + meant[at:] for at in range(len(meant) + 1) for each in letters}
    one_away |= {meant[:at] + meant[at + 1 :] for at in range(len(meant))}
    one_away |= {meant[:at] + each + meant[at + 1 :] for at in range(len(meant)) for each in letters}
    one_away |= {meant[:at] + meant[at + 1] + meant[at] + meant[at + 2 :] for at in range(len(meant) - 1)}

    result = refused(KnownNames("Abacus", (meant,)), context(written))

    assert bool(result) == (written != meant and written in one_away)
