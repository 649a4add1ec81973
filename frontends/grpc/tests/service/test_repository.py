"""Index, load and unload, from messages to calls of the server."""

import pytest

from naiad.errors import InvalidArgumentError, UnsupportedError
from naiad_grpc.service.repository import RepositoryRpcs


def test_the_index_has_every_version_and_its_state(ask):
    index = ask(RepositoryRpcs, "RepositoryIndex", repository_name="ignored")

    assert [(each.name, each.version, each.state, each.reason) for each in index.models] == [
        ("m", "1", "READY", ""),
        ("n", "2", "UNAVAILABLE", "unloaded"),
        ("half ?", "", "", ""),
    ]


def test_the_index_of_what_is_ready_is_shorter(ask):
    assert [each.name for each in ask(RepositoryRpcs, "RepositoryIndex", ready=True).models] == ["m"]


def test_a_load_may_bring_a_configuration_and_files(ask, server):
    parameters = {"config": {"string_param": "{}"}, "file:1/model.onnx": {"bytes_param": b"\x00\xff"}}

    ask(RepositoryRpcs, "RepositoryModelLoad", model_name="m", parameters=parameters)

    assert server.calls == [("load", "m", "{}", {"1/model.onnx": b"\x00\xff"})]


def test_a_plain_load_brings_neither(ask, server):
    ask(RepositoryRpcs, "RepositoryModelLoad", model_name="m")

    assert server.calls == [("load", "m", "", {})]


@pytest.mark.parametrize("dependents", [True, False])
def test_an_unload_may_take_dependents_along(ask, server, dependents):
    parameters = {"unload_dependents": {"bool_param": dependents}}

    ask(RepositoryRpcs, "RepositoryModelUnload", model_name="m", parameters=parameters)

    assert server.calls == [("unload", "m", dependents)]


@pytest.mark.parametrize(
    ("rpc", "parameters", "message"),
    [
        (
            "Load",
            {"config": {"bytes_param": b"{}"}},
            "invalid value type for 'config' parameter, expected string_param.",
        ),
        ("Load", {"file:1/x": {"string_param": "eA=="}}, "'file:1/x' parameter, expected bytes_param."),
        ("Load", {"configuration": {"string_param": "{}"}}, "unrecognized load parameter 'configuration'"),
        ("Load", {"config": {}}, "expected string_param."),
        ("Unload", {"unload_dependents": {"string_param": "yes"}}, "expected bool_param."),
        ("Unload", {"dependents": {"bool_param": True}}, "unrecognized unload parameter 'dependents'"),
    ],
)
def test_other_parameters_are_refused_before_anything_happens(ask, server, rpc, parameters, message):
    with pytest.raises(InvalidArgumentError) as caught:
        ask(RepositoryRpcs, f"RepositoryModel{rpc}", model_name="m", parameters=parameters)

    assert message in str(caught.value)
    assert server.calls == []


@pytest.mark.parametrize("rpc", ["Load", "Unload"])
def test_no_repository_can_be_named(ask, rpc):
    with pytest.raises(UnsupportedError, match="'repository_name' specification is not supported"):
        ask(RepositoryRpcs, f"RepositoryModel{rpc}", repository_name="r", model_name="m")
