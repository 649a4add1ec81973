"""Messages of RPCs other than inference are parsed on the event loop: long ones are refused before that."""

import asyncio
from types import SimpleNamespace

import pytest

from naiad.errors import UnsupportedError
from naiad_grpc.catalogue import operations
from naiad_grpc.messages import HEALTH_PACKAGE, message_class, rpcs
from naiad_grpc.service.health import HealthRpcs
from naiad_grpc.service.message_limits import MAX_BYTES, MOST_LOAD_FIELDS, limited
from naiad_grpc.service.operations import UnaryOperation
from naiad_grpc.service.repository import RepositoryRpcs
from naiad_grpc.statuses import Code, RpcError

UNKNOWN_FIELD = b"\x7a"
"""The tag of a field with a length that no message of the service has."""


def no_service(kind):
    raise UnsupportedError(f"there is no {kind.name}")


def served():
    settings = {"grpc-header-forward-pattern": "", "grpc-max-response-size": 1}
    return operations(SimpleNamespace(settings=settings, labels=None, service=no_service), asyncio.Event())


def long_message(size):
    """A valid message of any kind, of `size` bytes and some for its head."""
    return UNKNOWN_FIELD + b"\x80\x80\x04" + bytes(65536) + (UNKNOWN_FIELD + b"\x00") * ((size - 65536) // 2)


@pytest.fixture
def load(server):
    """Load a model with the files of that many bytes each."""
    (operation,) = (each for each in RepositoryRpcs(server).operations() if each.path.endswith("ModelLoad"))

    def load(*sizes, more=b""):
        request = message_class("RepositoryModelLoadRequest")(model_name="m")
        for index, size in enumerate(sizes):
            request.parameters[f"file:1/{index}"].bytes_param = bytes(size)
        asyncio.run(limited(operation).answer(request.SerializeToString() + more, None))

    return load


@pytest.mark.parametrize("name", [each.name for each in rpcs() if each.name not in ("ModelInfer", "ModelStreamInfer")])
def test_a_long_message_to_an_rpc_other_than_inference_is_refused(name):
    (operation,) = (each for each in served() if each.path.endswith(f"/{name}"))
    message = long_message(65536 + 2 * MOST_LOAD_FIELDS)

    with pytest.raises(RpcError) as refused:
        asyncio.run(operation.answer(message, None))

    expected = Code.INVALID_ARGUMENT if name == "RepositoryModelLoad" else Code.RESOURCE_EXHAUSTED
    assert refused.value.code is expected


def test_long_messages_of_the_health_and_reflection_services_are_refused():
    async def messages():
        yield long_message(65536)

    async def refusal(operation):
        answered = operation.answer(long_message(65536) if isinstance(operation, UnaryOperation) else messages(), None)
        with pytest.raises(RpcError) as refused:
            await (answered if isinstance(operation, UnaryOperation) else anext(answered))
        return refused.value.code

    others = [each for each in served() if "/inference." not in each.path]

    assert len(others) == 4
    assert {asyncio.run(refusal(each)) for each in others} == {Code.RESOURCE_EXHAUSTED}


def test_a_message_of_64_kib_is_answered(server):
    (check,) = (each for each in HealthRpcs(server, asyncio.Event()).operations() if each.path.endswith("/Check"))
    message = UNKNOWN_FIELD + b"\xfc\xff\x03" + bytes(MAX_BYTES - 4)

    answer = asyncio.run(limited(check).answer(message, None))

    assert message_class("HealthCheckResponse", HEALTH_PACKAGE).FromString(answer).status == 1


def test_a_model_is_loaded_with_large_files(server, load):
    load(1 << 20, 1 << 20)

    ((_, name, _, files),) = server.calls
    assert (name, {path: len(content) for path, content in files.items()}) == ("m", {"1/0": 1 << 20, "1/1": 1 << 20})


@pytest.mark.parametrize(
    "more",
    [
        b"\x12\x00" * MOST_LOAD_FIELDS,
        b"\x1a\x00" * MOST_LOAD_FIELDS,
        b"\x1a\x80\x80\x01" + b"\x0a\x00" * MOST_LOAD_FIELDS,
        b"\x1a\x84\x80\x01\x12\x80\x80\x01" + b"\x08\x00" * MOST_LOAD_FIELDS,
    ],
    ids=["names", "parameters", "names of a parameter", "contents of a parameter"],
)
def test_a_long_load_request_of_many_fields_is_refused(server, load, more):
    with pytest.raises(RpcError, match="more than 8192 fields") as refused:
        load(65536, more=more)

    assert (refused.value.code, server.calls) == (Code.INVALID_ARGUMENT, [])


def test_a_long_load_request_that_is_cut_is_refused(load):
    with pytest.raises(RpcError, match="not a valid RepositoryModelLoadRequest") as refused:
        load(65536, more=b"\x12")

    assert refused.value.code is Code.INVALID_ARGUMENT
