"""What is served, as messages."""

import pytest

from naiad.errors import NotFoundError
from naiad_config.descriptors import from_message
from naiad_grpc.service.metadata import MetadataRpcs


def test_the_server_says_what_it_is(ask):
    metadata = ask(MetadataRpcs, "ServerMetadata")

    assert (metadata.name, metadata.version, list(metadata.extensions)) == ("naiad", "0.1.0", ["statistics", "logging"])


def test_a_model_says_what_it_takes_and_gives(ask):
    metadata = ask(MetadataRpcs, "ModelMetadata", name="m")

    assert (metadata.name, list(metadata.versions), metadata.platform) == ("m", ["1", "3"], "python")
    assert [(each.name, each.datatype, list(each.shape)) for each in metadata.inputs] == [("X", "FP32", [-1, 4])]
    assert [(each.name, each.datatype, list(each.shape)) for each in metadata.outputs] == [("Y", "BYTES", [2])]


def test_a_configuration_comes_whole(ask, server):
    metadata = ask(MetadataRpcs, "ModelConfig", name="m", version="3")

    assert from_message(metadata.config) == server.model_config("m")


@pytest.mark.parametrize("name", ["ModelMetadata", "ModelConfig"])
def test_an_unknown_model_is_not_found(ask, name):
    with pytest.raises(NotFoundError):
        ask(MetadataRpcs, name, name="dream")
