"""Ways to a whole server with Triton's client: unix sockets, compression, pings, and the limit of a message."""

import pytest
import tritonclient.grpc as triton
from tritonclient.utils import InferenceServerException

from .conftest import values_input

SERVES = [1.0, 2.0]


def infer(client, *values, **more):
    """What the mirror gives for these values."""
    return client.infer("mirror", values_input(*(values or SERVES)), **more).as_numpy("OUTPUT").tolist()


def refusal(action):
    """The status and message of the error that the action must end with."""
    with pytest.raises(InferenceServerException) as caught:
        action()
    return caught.value.status().removeprefix("StatusCode."), caught.value.message()


def test_the_client_comes_over_a_unix_socket(start_server, tmp_path):
    server = start_server(**{"grpc-address": f"unix:{tmp_path}/naiad.sock"})

    assert server.target == f"unix:{tmp_path}/naiad.sock"
    assert infer(server.client()) == SERVES


@pytest.mark.parametrize("level", ["none", "high"])
@pytest.mark.parametrize("algorithm", [None, "gzip", "deflate"])
def test_messages_may_be_compressed_both_ways(start_server, level, algorithm):
    server = start_server(**{"grpc-infer-response-compression-level": level})

    values = [float(each) for each in range(20_000)]

    assert infer(server.client(), *values, compression_algorithm=algorithm) == values


def test_the_client_may_ask_whether_the_connection_lives(server):
    pings = triton.KeepAliveOptions(keepalive_time_ms=10_000, keepalive_timeout_ms=5_000)

    assert infer(server.client(keepalive_options=pings)) == SERVES


def test_tensors_over_the_limit_are_refused(start_server):
    client = start_server(**{"grpc-max-message-size": 10_000}).client()

    status, message = refusal(lambda: client.infer("mirror", values_input(*range(5000))))

    assert (status, "larger than max" in message) == ("RESOURCE_EXHAUSTED", True)
    assert infer(client) == SERVES
