"""Configuration messages are values: compared, hashed and shown by their fields, and never changed."""

from dataclasses import FrozenInstanceError, replace

import pytest

from naiad_config import DataType, ModelConfig, ModelInput, ModelOutput

INPUT = ModelInput(name="x", data_type=DataType.TYPE_FP32, dims=(2,))


def test_messages_of_one_class_are_equal_when_all_fields_are():
    same = ModelInput(name="x", data_type=DataType.TYPE_FP32, dims=(2,))

    assert same == INPUT
    assert hash(INPUT) == hash(same)
    assert ModelConfig(name="m", input=(INPUT,)) == ModelConfig(name="m", input=(same,))
    assert replace(INPUT, dims=(3,)) != INPUT
    assert ModelInput() != ModelOutput()
    assert INPUT != "x"


def test_a_message_is_shown_with_the_values_of_its_fields():
    shown = repr(INPUT)

    assert shown.startswith("ModelInput(name='x', data_type=<DataType.TYPE_FP32: 11>, ")
    assert "dims=(2,)" in shown


def test_a_message_cannot_be_changed():
    with pytest.raises(FrozenInstanceError):
        INPUT.name = "y"
