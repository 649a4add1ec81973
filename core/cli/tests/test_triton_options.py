"""Options of Triton that change nothing here are taken, and say so; the deprecated one means what it meant."""

from typing import Any

import pytest

from naiad.options import Option
from naiad_cli.triton_options import WITHOUT_EFFECT, take_triton_options, triton_options


def taken(**values: Any) -> tuple[dict[str, Any], list[str]]:
    """The values that are left over of these, and the warnings."""
    kept = {name.replace("_", "-"): value for name, value in values.items()}
    warnings = list(take_triton_options(kept, triton_options(())))
    return kept, warnings


@pytest.mark.parametrize("option", WITHOUT_EFFECT, ids=lambda option: option.name)
def test_an_option_that_changes_nothing_says_so_and_why(option: Option) -> None:
    values, warnings = taken(**{option.name: "something else", "http-port": 1})

    assert values == {"http-port": 1}
    assert warnings == [f"--{option.name} has no effect: {option.help}"]


def test_a_default_asks_for_nothing() -> None:
    assert taken(**{option.name: option.default for option in WITHOUT_EFFECT}) == ({}, [])


@pytest.mark.parametrize(
    ("values", "counts"),
    [
        ({"strict_model_config": True}, True),
        ({"strict_model_config": False}, False),
        ({"strict_model_config": False, "disable_auto_complete_config": True}, True),
        ({"strict_model_config": True, "disable_auto_complete_config": False}, False),
    ],
)
def test_strict_model_config_is_the_older_name_of_disable_auto_complete_config(
    values: dict[str, bool], counts: bool
) -> None:
    kept, (warning,) = taken(**values)

    assert kept == {"disable-auto-complete-config": counts}
    assert warning == (
        "--strict-model-config is deprecated; write --disable-auto-complete-config. "
        f"What counts is --disable-auto-complete-config={str(counts).lower()}"
    )


def test_an_option_that_a_plugin_brings_is_the_plugins() -> None:
    names = {option.name for option in triton_options({"allow-sagemaker"})}

    assert "allow-sagemaker" not in names
    assert "sagemaker-port" in names
