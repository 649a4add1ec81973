"""Models written in each of the three ways, through every client of Triton's library."""

import json
from typing import Any

import numpy as np
import pytest
from tritonclient.grpc.aio import auth as grpc_aio_auth
from tritonclient.grpc.auth import BasicAuth as GrpcAuth
from tritonclient.http.aio import auth as http_aio_auth
from tritonclient.http.auth import BasicAuth as HttpAuth

from ..asking import KINDS, A, B
from .driving import Driven

AUTHORIZATION = "Basic dXNlcjpwYXNz"
PLUGINS = {
    "http": HttpAuth,
    "http.aio": http_aio_auth.BasicAuth,
    "grpc": GrpcAuth,
    "grpc.aio": grpc_aio_auth.BasicAuth,
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_model_adds_and_subtracts(client: Driven, kind: str) -> None:
    result = client.infer(f"{kind}_add_sub", [client.tensor("A", A), client.tensor("B", B)])

    assert result.as_numpy("SUM").tolist() == (A + B).tolist()
    assert result.as_numpy("DIFFERENCE").tolist() == (A - B).tolist()


def test_a_tensor_as_large_as_the_limit_allows_goes_there_and_back(http_client: Driven) -> None:
    array = np.arange(16_000_000, dtype=np.float32)

    result = http_client.infer("echo", [http_client.tensor("x", array)])

    np.testing.assert_array_equal(result.as_numpy("output"), array)


def test_a_plugin_of_the_client_signs_its_requests(client: Driven) -> None:
    x = client.tensor("x", np.ones(1, np.float32))
    client.register_plugin(PLUGINS[client.kind]("user", "pass"))
    signed = client.infer("telling", [x])
    plugged = client.plugin()
    client.unregister_plugin()
    unsigned = client.infer("telling", [x])

    assert isinstance(plugged, PLUGINS[client.kind])
    assert parameters(signed) == {"authorization": AUTHORIZATION}
    assert parameters(unsigned) == {}


def parameters(result: Any) -> dict[str, Any]:
    """The parameters that the model `telling` saw."""
    document: dict[str, Any] = json.loads(result.as_numpy("REPORT")[0])["parameters"]
    return document
