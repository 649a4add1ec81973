"""What is written reads back equal, and protobuf reads and writes the same."""

import json
import struct
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from google.protobuf import json_format, text_format
from hypothesis import example, given
from hypothesis import strategies as st

from naiad.backend import BackendTraits
from naiad_config import ModelConfig
from naiad_config.descriptors import from_message, message_class, to_message
from naiad_config.escapes import quoted, unescape
from naiad_config.fields import FieldSpec, specs
from naiad_config.json import parse_json, to_json
from naiad_config.mistakes import INTEGER_RANGES
from naiad_config.normalisation import normalise
from naiad_config.scalars import float32
from naiad_config.text import parse_text, to_text
from naiad_config.validation import problems

_text = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)


def configs() -> st.SearchStrategy[ModelConfig]:
    """Model configurations with any fields set to any values that their types allow; no NaN, which equals nothing."""
    return _messages(ModelConfig)


@st.composite
def _messages(draw: Callable[[st.SearchStrategy[Any]], Any], cls: type) -> Any:
    chosen = draw(_names(cls))
    results: dict[str, Any] = {}
    oneofs: set[str] = set()
    for spec in specs(cls).values():
        if spec.name not in chosen or spec.oneof in oneofs:
            continue
        oneofs |= {spec.oneof} - {""}
        results[spec.attribute] = draw(_values(spec))
    return cls(**results)


@cache  # a strategy that is made for each example takes longer than what it is drawn for
def _names(cls: type) -> st.SearchStrategy[set[str]]:
    names = [spec.name for spec in specs(cls).values()]
    return st.sets(st.sampled_from(names), max_size=4) if names else st.just(set())


@cache
def _values(spec: FieldSpec) -> st.SearchStrategy[Any]:
    if spec.cardinality == "map":
        return st.dictionaries(_single(spec.map_key), _single(spec.map_value), max_size=2)
    if spec.cardinality == "repeated":
        return st.lists(_single(spec), max_size=2).map(tuple)
    return _single(spec)


@cache
def _single(spec: FieldSpec) -> st.SearchStrategy[Any]:
    if spec.is_message:
        return st.deferred(lambda: _messages(spec.type))
    if spec.is_enum:
        return st.sampled_from(spec.type)
    if spec.scalar in INTEGER_RANGES:
        lowest, highest = INTEGER_RANGES[spec.scalar]
        return st.integers(lowest, highest)
    if spec.scalar == "float":
        return st.floats(allow_nan=False, width=32).map(float32)
    return {"string": _text, "bool": st.booleans(), "double": st.floats(allow_nan=False)}[spec.scalar]


@given(configs())
def test_text_that_we_write_reads_back_equal(config):
    text = to_text(config)

    assert parse_text(text) == config


@given(configs())
def test_protobuf_reads_the_text_that_we_write(config):
    read = text_format.Parse(to_text(config), message_class(ModelConfig)())

    assert read == to_message(config)


@given(configs(), st.booleans(), st.booleans())
def test_we_read_the_text_that_protobuf_writes(config, one_line, angles):
    text = text_format.MessageToString(
        to_message(config), as_one_line=one_line, pointy_brackets=angles, use_short_repeated_primitives=angles
    )

    assert parse_text(text) == config


@given(configs())
def test_json_that_we_write_reads_back_equal(config):
    assert parse_json(json.dumps(to_json(config))) == config


def test_negative_zero_keeps_its_sign():
    config = parse_text("sequence_batching { direct { minimum_slot_utilization: -0.0 } }")

    read = parse_json(json.dumps(to_json(config)))

    assert str(read.sequence_batching.direct.minimum_slot_utilization) == "-0.0"


@given(configs())
def test_protobuf_reads_the_json_that_we_write(config):
    read = json_format.Parse(json.dumps(to_json(config)), message_class(ModelConfig)())

    assert read == to_message(config)


@given(configs(), st.booleans())
def test_we_read_the_json_that_protobuf_writes(config, names):
    text = json_format.MessageToJson(to_message(config), preserving_proto_field_name=names)

    assert parse_json(text) == config


@given(configs())
def test_messages_turn_back_into_the_configuration(config):
    wire = to_message(config).SerializeToString()

    assert from_message(message_class(ModelConfig).FromString(wire)) == config


@given(configs(), st.integers(0, 3))
def test_normalising_changes_nothing_the_second_time_and_checking_never_fails(config, gpus):
    named = replace(config, name="m")
    once = normalise(named, traits=BackendTraits("b", cpu_instances=2), gpus=gpus)

    result = problems(once, model_directory=Path("/nowhere"))

    assert normalise(once, traits=BackendTraits("b", cpu_instances=2), gpus=gpus) == once
    assert all(problem.message for problem in result)


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_quoted_strings_turn_back(content):
    assert unescape(quoted(content)[1:-1]).decode() == content


@given(st.floats(width=32, allow_nan=False))
@example(999999986991104.0)  # 1000000000000000.0 has more characters and fewer digits
def test_the_short_form_of_a_float_is_the_same_float(value):
    assert struct.pack("<f", float32(value)) == struct.pack("<f", value)
    assert _digits(float32(value)) <= _digits(value)


def _digits(value):
    """How many significant digits it takes to write the number."""
    return len(Decimal(repr(value)).normalize().as_tuple().digits)


@pytest.mark.parametrize("value", [0.1, 0.3, 1e-45, 16777216.0, 3.4028235e38])
def test_short_decimals_stay_as_they_are_in_32_bits(value):
    assert float32(value) == value


def test_a_float_that_is_too_large_for_32_bits_is_refused():
    with pytest.raises(OverflowError):
        float32(1e39)
