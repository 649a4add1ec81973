"""Ways to a whole server with Triton's client: TLS, sockets, compression, pings, limits, metadata, deadlines."""

import threading

import numpy as np
import pytest
import tritonclient.grpc as triton
from tritonclient.utils import InferenceServerException

from .conftest import PATIENCE, values_input

SERVES = [1.0, 2.0]


def infer(client, *values, **more):
    """What the mirror gives for these values."""
    return client.infer("mirror", values_input(*(values or SERVES)), **more).as_numpy("OUTPUT").tolist()


def refusal(action):
    """The status and message of the error that the action must end with."""
    with pytest.raises(InferenceServerException) as caught:
        action()
    return caught.value.status().removeprefix("StatusCode."), caught.value.message()


def wait_until_one_failed(client):
    """Return when the server has counted a request as failed."""
    while not client.get_inference_statistics("mirror").model_stats[0].inference_stats.fail.count:
        pass


@pytest.mark.parametrize("mutual", [False, True])
def test_the_client_comes_over_tls(start_server, certificates, mutual):
    server = start_server(
        **{
            "grpc-use-ssl": True,
            "grpc-use-ssl-mutual": mutual,
            "grpc-server-cert": certificates.file("cert"),
            "grpc-server-key": certificates.file("key"),
            "grpc-root-cert": certificates.file("root"),
        }
    )
    shown = {"private_key": certificates.file("client_key"), "certificate_chain": certificates.file("client_cert")}
    tls = {"ssl": True, "root_certificates": certificates.file("root")}
    named = {"channel_args": [("grpc.ssl_target_name_override", "localhost")]}

    with_certificate = infer(server.client(**tls, **shown, **named))
    without = server.client(**tls, **named)

    assert with_certificate == SERVES
    if mutual:
        assert refusal(lambda: infer(without))[0] == "UNAVAILABLE"
    else:
        assert infer(without) == SERVES
    assert refusal(lambda: infer(server.client()))[0] == "UNAVAILABLE"


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


def test_large_tensors_go_there_and_back(server):
    tensor = triton.InferInput("INPUT", [2_000_000], "FP32")
    sent = np.arange(2_000_000, dtype=np.float32)
    tensor.set_data_from_numpy(sent)

    np.testing.assert_array_equal(server.client().infer("mirror", [tensor]).as_numpy("OUTPUT"), sent)


def test_metadata_that_matches_becomes_parameters(start_server):
    client = start_server(**{"grpc-header-forward-pattern": "^x-"}).client()
    headers = {"x-tenant": "seven", "other": "no"}

    response = client.infer("mirror", values_input(1), headers=headers, parameters={"x-tenant": "one"}).get_response()

    assert {key: value.string_param for key, value in response.parameters.items()} == {"x-tenant": "seven"}


def test_metadata_named_as_a_parameter_is_not_forwarded(start_server):
    client = start_server(**{"grpc-header-forward-pattern": "."}).client()

    status, message = refusal(lambda: infer(client, headers={"sequence_id": "1"}))

    assert (status, "Header 'sequence_id' is reserved" in message) == ("INVALID_ARGUMENT", True)


def test_restricted_rpcs_need_their_metadata(start_server):
    rules = ("health,model-repository:admin=secret", "inference:key=other")
    client = start_server(**{"grpc-restricted-protocol": rules}).client()
    admin = {"triton-grpc-protocol-admin": "secret"}

    status, message = refusal(client.is_server_live)

    assert (status, message) == (
        "UNAVAILABLE",
        "This protocol is restricted, expecting header 'triton-grpc-protocol-admin'",
    )
    assert client.is_server_live(headers=admin)
    assert client.get_model_repository_index(headers=admin).models
    assert refusal(lambda: infer(client, headers=admin))[0] == "UNAVAILABLE"
    assert infer(client, headers={"triton-grpc-protocol-key": "other"}) == SERVES
    assert client.get_server_metadata().name == "naiad"


def test_a_request_whose_deadline_passes_is_given_up(server):
    server.backend.hold()
    client, statuses = server.client(), []
    asking = threading.Thread(target=lambda: statuses.append(refusal(lambda: infer(client, client_timeout=1))[0]))
    asking.start()
    server.backend.wait_until_held(PATIENCE)

    asking.join(PATIENCE)
    wait_until_one_failed(client)
    server.backend.release()

    assert statuses == ["DEADLINE_EXCEEDED"]
    assert infer(client) == SERVES
    assert [batch.requests[0].cancelled for batch in server.backend.batches] == [True, False]


def test_a_request_that_its_client_cancels_is_given_up(server):
    server.backend.hold()
    client, came, errors = server.client(), threading.Event(), []
    call = client.async_infer("mirror", values_input(9), lambda result, error: (errors.append(error), came.set()))
    server.backend.wait_until_held(PATIENCE)

    call.cancel()
    assert came.wait(PATIENCE)
    wait_until_one_failed(client)
    server.backend.release()

    assert errors[0].status() == "StatusCode.CANCELLED"
    assert infer(client) == SERVES
    assert [batch.requests[0].cancelled for batch in server.backend.batches] == [True, False]
