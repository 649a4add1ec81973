"""Request parameters: types, ranges, and names that are the protocol's own."""

import pytest

from naiad.errors import InvalidArgumentError


def test_parameters_with_a_meaning_are_taken_out(decode, ask):
    message = ask(
        parameters={
            "sequence_id": {"int64_param": 42},
            "sequence_start": {"bool_param": True},
            "sequence_end": {"bool_param": True},
            "priority": {"uint64_param": 2},
            "timeout": {"int64_param": 5000},
        }
    )

    request, _ = decode(message)

    assert (request.correlation_id, request.sequence_start, request.sequence_end) == (42, True, True)
    assert (request.priority, request.timeout_microseconds, request.parameters) == (2, 5000, {})


def test_all_others_are_the_models(decode, ask):
    own = {"s": "text", "i": -(2**63), "b": False, "d": 0.5, "binary_data_output": True, "headers": "x"}
    kinds = {str: "string_param", int: "int64_param", bool: "bool_param", float: "double_param"}

    request, _ = decode(ask(parameters={key: {kinds[type(value)]: value} for key, value in own.items()}))

    assert request.parameters == own
    assert {key: type(value) for key, value in request.parameters.items()} == {k: type(v) for k, v in own.items()}


def test_a_sequence_may_have_a_name(decode, ask):
    assert decode(ask(parameters={"sequence_id": {"string_param": "s"}}))[0].correlation_id == "s"


def test_a_sequence_id_has_64_bits_without_a_sign(decode, ask):
    assert decode(ask(parameters={"sequence_id": {"int64_param": -1}}))[0].correlation_id == 2**64 - 1


@pytest.mark.parametrize(
    ("value", "read"),
    [({"int64_param": 3}, 3), ({"uint64_param": 3}, 3), ({"uint64_param": 2**64 - 1}, 2**63 - 1)],
)
def test_a_priority_is_any_whole_number_from_0_up(decode, ask, value, read):
    assert decode(ask(parameters={"priority": value}))[0].priority == read


def test_the_empty_final_response_can_be_asked_for(decode, ask):
    message = ask(parameters={"triton_enable_empty_final_response": {"bool_param": True}})

    request, form = decode(message)

    assert form.empty_final
    assert request.parameters == {}


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("sequence_id", {"bool_param": True}, "parameter, expected int64_param or string_param."),
        ("sequence_id", {"uint64_param": 1}, "parameter, expected int64_param or string_param."),
        ("sequence_start", {"int64_param": 1}, "parameter, expected bool_param."),
        ("sequence_end", {}, "parameter, expected bool_param. It has no value."),
        ("priority", {"string_param": "1"}, "parameter, expected int64_param or uint64_param."),
        ("timeout", {"uint64_param": 1}, "parameter, expected int64_param."),
        ("triton_enable_empty_final_response", {"int64_param": 1}, "parameter, expected bool_param."),
        ("mine", {"uint64_param": 1}, "parameter, expected int64_param, bool_param, or string_param"),
        ("mine", {}, "parameter, expected int64_param, bool_param, or string_param"),
    ],
)
def test_a_parameter_of_the_wrong_type_is_refused(decode, ask, key, value, message):
    with pytest.raises(InvalidArgumentError, match=f"invalid value type for '{key}' {message}"):
        decode(ask(parameters={key: value}))


@pytest.mark.parametrize("key", ["priority", "timeout"])
def test_a_negative_number_is_refused(decode, ask, key):
    with pytest.raises(InvalidArgumentError, match=f"invalid value for '{key}', expected value >= 0."):
        decode(ask(parameters={key: {"int64_param": -1}}))


def test_reserved_names_are_refused(decode, ask):
    with pytest.raises(
        InvalidArgumentError,
        match=r"parameter keys starting with 'triton_' are reserved for Triton usage\. Only the following keys "
        "starting with 'triton_' are allowed: triton_enable_empty_final_response",
    ):
        decode(ask(parameters={"triton_mine": {"bool_param": True}}))
