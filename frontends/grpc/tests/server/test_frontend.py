"""The frontend's life: where it listens, what it refuses to start with, and how it ends; on either event loop."""

import asyncio
import subprocess
import sys

import grpc
import pytest
import uvloop
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase

import naiad_grpc
import naiad_shared_memory
from naiad import Server
from naiad_grpc.frontend import GrpcFrontend
from naiad_grpc.options import OPTIONS


@pytest.fixture(params=["asyncio", "uvloop"])
def run(request):
    """Run a coroutine on a loop of each kind."""

    def run(main):
        factory = uvloop.new_event_loop if request.param == "uvloop" else asyncio.new_event_loop
        with asyncio.Runner(loop_factory=factory) as runner:
            return runner.run(asyncio.wait_for(main, 60))

    return run


@pytest.fixture
def make_server(backend, models, transport):
    """A server over the fake's models that a test starts itself."""

    def make(**options):
        listening = {"grpc-port": 0, "grpc-address": "127.0.0.1", "grpc-transport": transport}
        chosen = {**listening, "exit-timeout-secs": 20.0, **options}
        return Server(model_repository=[models], plugins=[backend, naiad_grpc, naiad_shared_memory], options=chosen)

    return make


def target_of(server):
    return server.plugins.frontends()["grpc"].target


async def status_of(channel):
    health = health_pb2_grpc.HealthStub(channel)
    answer = await health.Check(health_pb2.HealthCheckRequest())
    return health_pb2.HealthCheckResponse.ServingStatus.Name(answer.status)


def test_it_says_where_it_listens(run, make_server, caplog):
    caplog.set_level("INFO", "naiad")

    async def main():
        async with make_server() as server, grpc.aio.insecure_channel(target_of(server)) as channel:
            return target_of(server), await status_of(channel)

    target, status = run(main())

    assert (target.startswith("127.0.0.1:"), status) == (True, "SERVING")
    assert f"grpc frontend listens at grpc://{target}" in caplog.text


def test_who_watches_the_health_is_reported_the_end(run, make_server):
    async def main():
        server = make_server()
        await server.start()
        async with grpc.aio.insecure_channel(target_of(server)) as channel:
            watch = health_pb2_grpc.HealthStub(channel).Watch(health_pb2.HealthCheckRequest())
            before = (await watch.read()).status
            stopping = asyncio.ensure_future(server.stop())
            after = (await watch.read()).status
            end = await watch.read()
            await stopping
            return before, after, end

    assert run(main()) == (1, 2, grpc.aio.EOF)


def test_a_reflection_client_finds_services_and_messages(server):
    with grpc.insecure_channel(server.target) as channel:
        database = ProtoReflectionDescriptorDatabase(channel)
        services = database.get_services()
        file = database.FindFileContainingSymbol("inference.ModelInferRequest")

    assert "inference.GRPCInferenceService" in services
    assert "grpc.health.v1.Health" in services
    assert [service.name for service in file.service] == ["GRPCInferenceService"]
    assert len(file.service[0].method) == 20


def test_the_transport_is_the_one_that_the_option_names(run, make_server, transport):
    async def main():
        async with make_server() as server:
            host, port = target_of(server).rsplit(":", 1)
            reader, writer = await asyncio.open_connection(host, int(port))
            writer.write(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
            answer = await reader.read()
            writer.close()
            return answer

    assert run(main()).startswith(b"HTTP/1.1 400 ") is (transport == "naiad")


def test_it_can_be_switched_off(run, make_server):
    async def main():
        async with make_server(**{"allow-grpc": False}) as server:
            return target_of(server)

    assert run(main()) == ""


def test_an_end_without_a_start_is_no_error():
    assert asyncio.run(GrpcFrontend().stop(1.0)) is None


@pytest.mark.parametrize(
    ("option", "text"),
    [
        ("grpc-port", "70000"),
        ("grpc-port", "-1"),
        ("grpc-max-message-size", "0"),
        ("grpc-max-message-size", str(2**31)),
        ("grpc-keepalive-time", "0"),
        ("grpc-http2-max-ping-strikes", "-1"),
    ],
)
def test_an_option_refuses_what_it_cannot_be(option, text):
    declared = next(each for each in OPTIONS if each.name == option)

    with pytest.raises(ValueError, match=text):
        declared.type(text)


OURS = "from naiad_grpc.catalogue import operations; from naiad_grpc.messages import message_class"
THEIRS = "import tritonclient.grpc, tritonclient.grpc.aio; from tritonclient.grpc import service_pb2"


@pytest.mark.parametrize("order", [f"{OURS}; {THEIRS}", f"{THEIRS}; {OURS}"], ids=["server first", "client first"])
def test_server_and_client_live_in_one_process_in_either_order(order):
    program = f"""
{order}
from naiad_grpc.messages import pool
assert pool().FindServiceByName("grpc.health.v1.Health")
ours = message_class("ModelInferRequest")(model_name="m", raw_input_contents=[b"1"])
theirs = service_pb2.ModelInferRequest.FromString(ours.SerializeToString())
assert (theirs.model_name, list(theirs.raw_input_contents)) == ("m", [b"1"])
assert type(ours) is not type(theirs)
"""

    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)

    assert (ran.returncode, ran.stderr) == (0, "")


def test_only_the_second_transport_imports_grpcio():
    program = """
import sys
import naiad_grpc.catalogue, naiad_grpc.inference, naiad_grpc.frontend, naiad_grpc.server.listener
assert "grpc" not in sys.modules, "grpcio is imported for nothing"
import naiad_grpc.grpcio.listener
assert "grpc" in sys.modules
"""

    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)

    assert (ran.returncode, ran.stderr) == (0, "")
