"""Requests that name shared memory wrongly, and the errors that they cause."""

import pytest

from naiad.errors import InvalidArgumentError, NotFoundError

from .regions import location, output, tensor

WRONG = {
    "data and region": (
        {"inputs": [tensor(parameters=location("r", 8), data=[1, 2])]},
        "'shared_memory_region' in 'parameters'. But 'data' and 'shared_memory_region' are set: 'X'",
    ),
    "binary and region": (
        {"inputs": [tensor(parameters={**location("r", 8), "binary_data_size": 8})]},
        "But 'binary_data_size' and 'shared_memory_region' are set: 'X'",
    ),
    "all sources": (
        {"inputs": [tensor(parameters={**location("r", 8), "binary_data_size": 8}, data=[1])]},
        "But 'data' and 'binary_data_size' and 'shared_memory_region' are set: 'X'",
    ),
    "no source": ({"inputs": [tensor(parameters={"shared_memory_byte_size": 8})]}, "But no field is set: 'X'"),
    "size and shape": (
        {"inputs": [tensor(parameters=location("r", 12))]},
        "input byte size mismatch for input 'X' for model 'm'. Expected 8, got 12",
    ),
    "no size": (
        {"inputs": [tensor(parameters=location("r"))]},
        "input byte size mismatch for input 'X' for model 'm'. Expected 8, got 0",
    ),
    "strings": (
        {"inputs": [tensor("S", "BYTES", (1,), location("r", 3))]},
        "incomplete string length indicator for inference input 'S' for model 'm'",
    ),
    "input outside": ({"inputs": [tensor(parameters=location("r", 8, 60))]}, "outside of 'r'"),
    "output outside": ({"inputs": [], "outputs": [output(**location("r", 8, 60))]}, "outside of 'r'"),
    "name no string": ({"inputs": [tensor(parameters=location(7, 8))]}, "'shared_memory_region': it must be a string"),
    "offset negative": (
        {"inputs": [tensor(parameters=location("r", 8, -1))]},
        "'shared_memory_offset': it must be an int",
    ),
    "size a string": (
        {"inputs": [], "outputs": [output(**location("r", "8"))]},
        "'shared_memory_byte_size': it must be an integer",
    ),
    "shared and classes": (
        {"inputs": [], "outputs": [output(**location("r", 8), classification=1)]},
        "Output can't set both 'shared_memory_region' and 'classification', as 'Y' does",
    ),
    "shared and binary": (
        {"inputs": [], "outputs": [output(**location("r", 8), binary_data=True)]},
        "Output can't set both 'shared_memory_region' and 'binary_data', as 'Y' does",
    ),
    "output twice": (
        {"inputs": [], "outputs": [output(**location("r", 8)), output(binary_data=True)]},
        "output 'Y' already exists in request",
    ),
}


@pytest.mark.parametrize(("document", "message"), WRONG.values(), ids=WRONG.keys())
def test_a_wrong_request_is_refused_with_what_is_wrong(regions, document, message):
    regions.put("r", bytes(64))

    with pytest.raises(InvalidArgumentError) as caught:
        regions.decode(document)

    assert message in str(caught.value)


@pytest.mark.parametrize(
    "document",
    [{"inputs": [tensor(parameters=location("r", 8))]}, {"inputs": [], "outputs": [output(**location("r", 8))]}],
    ids=["input", "output"],
)
def test_a_region_must_be_registered(regions, document):
    with pytest.raises(NotFoundError, match="shared memory region: 'r'"):
        regions.decode(document)
