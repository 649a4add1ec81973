"""The functions and constants of `triton_python_backend_utils`, and its ModelConfig."""

import numpy as np
import pytest

import triton_python_backend_utils as pb_utils
from naiad_config import DataType

CONFIG = {"input": [{"name": "A", "dims": [1]}], "output": [{"name": "X", "dims": [2]}]}


@pytest.mark.parametrize("config", [kind for kind in DataType if kind.value not in (0, 14)])
def test_datatypes_go_between_names_numbers_and_numpy(config):
    numpy_type = pb_utils.triton_string_to_numpy(config.name)

    assert np.dtype(pb_utils.triton_to_numpy_type(int(config))) == np.dtype(numpy_type)
    assert pb_utils.numpy_to_triton_type(numpy_type) == config
    assert pb_utils.TRITON_STRING_TO_NUMPY[config.name] is numpy_type


def test_unknown_datatypes_are_reported():
    with pytest.raises(KeyError, match="'TYPE_FP31' has no numpy type; those that have one are"):
        pb_utils.triton_string_to_numpy("TYPE_FP31")
    assert pb_utils.triton_to_numpy_type(99) is None
    assert pb_utils.numpy_to_triton_type(np.complex64) is None
    assert pb_utils.numpy_to_triton_type(None) is None


def test_strings_survive_serialization():
    strings = np.array([["", "grün"], [b"\x00\xff", b"x" * 300]], dtype=object)

    encoded = pb_utils.serialize_byte_tensor(strings)

    assert pb_utils.deserialize_bytes_tensor(encoded).tolist() == [b"", "grün".encode(), b"\x00\xff", b"x" * 300]
    assert pb_utils.serialize_byte_tensor(np.empty(0, dtype=object)) == ()
    assert pb_utils.serialize_byte_tensor(np.zeros(1)) is None


@pytest.mark.parametrize("encoded", [b"\x05\x00", b"\x05\x00\x00\x00ab"])
def test_cut_off_strings_are_refused(encoded):
    with pytest.raises(pb_utils.TritonModelException, match="BYTES tensor"):
        pb_utils.deserialize_bytes_tensor(encoded)


def test_a_configuration_is_looked_into_by_name():
    assert pb_utils.get_input_config_by_name(CONFIG, "A") == {"name": "A", "dims": [1]}
    assert pb_utils.get_output_config_by_name(CONFIG, "X") == {"name": "X", "dims": [2]}
    assert pb_utils.get_input_config_by_name(CONFIG, "X") is None
    assert pb_utils.using_decoupled_model_transaction_policy(CONFIG) is False
    assert pb_utils.using_decoupled_model_transaction_policy({"model_transaction_policy": {"decoupled": True}}) is True


def test_constants_have_the_protocols_values():
    assert pb_utils.TRITONSERVER_REQUEST_FLAG_SEQUENCE_START == 1
    assert pb_utils.TRITONSERVER_REQUEST_FLAG_SEQUENCE_END == 2
    assert pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL == 1
    assert pb_utils.TRITONSERVER_REQUEST_RELEASE_ALL == 1
    assert pb_utils.TRITONSERVER_REQUEST_RELEASE_RESCHEDULE == 2


def config_with(**fields):
    return pb_utils.ModelConfig({"name": "m", "max_batch_size": 0, **fields})


def test_a_written_input_is_completed():
    config = config_with(input=[{"name": "A", "data_type": "TYPE_INVALID", "dims": []}])

    config.add_input({"name": "A", "data_type": "TYPE_FP32", "dims": [4], "optional": True})

    assert config.as_dict()["input"] == [{"name": "A", "data_type": "TYPE_FP32", "dims": [4], "optional": True}]


def test_transactions_are_set_once():
    config = config_with()

    config.set_model_transaction_policy({"decoupled": True})

    assert config.as_dict()["model_transaction_policy"] == {"decoupled": True}


A = {"name": "A", "data_type": "TYPE_FP32", "dims": [4]}


@pytest.mark.parametrize(
    ("written", "call", "message"),
    [
        ({}, lambda c: c.add_input({"name": "A", "dims": [4]}), "input 'A' in auto.* is missing 'data_type' property"),
        (
            {},
            lambda c: c.add_output({"name": "A", "data_type": "TYPE_FP32"}),
            "output 'A' .* is missing 'dims' property",
        ),
        ({}, lambda c: c.add_input({"dims": [4]}), "input in auto.* is missing 'name' property"),
        (
            {},
            lambda c: c.add_input({**A, "shape": 1}),
            "contains property other than 'name', 'data_type', 'dims' and 'optional'",
        ),
        ({}, lambda c: c.add_output({**A, "optional": True}), "other than 'name', 'data_type' and 'dims'"),
        (
            {"input": [{**A, "dims": [16]}]},
            lambda c: c.add_input(A),
            r"tensor 'A': .* dims \[4\] but .* dims \[16\]",
        ),
        (
            {"output": [{**A, "data_type": "TYPE_INT8"}]},
            lambda c: c.add_output(A),
            "configuration expects datatype TYPE_INT8 for output 'A', model provides TYPE_FP32",
        ),
        (
            {"input": [{**A, "optional": False}]},
            lambda c: c.add_input({**A, "optional": True}),
            "tensor 'A': .* optional True but .* optional False",
        ),
        (
            {"sequence_batching": {}},
            lambda c: c.set_dynamic_batching(),
            "scheduling_choice as 'sequence_batching', but .* tries to set scheduling_choice as 'dynamic_batching'",
        ),
        (
            {"max_batch_size": 6},
            lambda c: c.set_max_batch_size(4),
            "max_batch_size 6, but in auto-complete-config function for model 'm' specified max_batch_size 4",
        ),
        ({}, lambda c: c.set_model_transaction_policy({"x": 1}), "contains property other than 'decoupled'"),
        (
            {"model_transaction_policy": {"decoupled": False}},
            lambda c: c.set_model_transaction_policy({"decoupled": True}),
            "trying to change decoupled property .* already set to 'False'",
        ),
    ],
)
def test_contradicting_a_configuration_is_refused(written, call, message):
    with pytest.raises(ValueError, match=message):
        call(config_with(**written))
