"""A restricted path that is spelled in another way is refused too, and no model sees the request."""

import http.client
import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from .conftest import ending_well
from .running import PATIENCE, Running

BODY = json.dumps({"inputs": [{"name": "x", "datatype": "FP32", "shape": [1], "data": [1]}]})
KEY = {"for-statistics": "secret"}
PLAIN = ["/v2/models/echo/infer", "/v2/models/echo/versions/1/infer", "/v2/models/echo/generate"]
SPELLINGS = [
    *PLAIN,
    "/v2/models/echo/%69nfer",
    "/%762/models/echo/infer",
    "/v2/models/ech%6f/infer",
    "//v2/models/echo/infer",
    "/v2//models/echo/infer",
    "/v2/models/echo//infer",
    "/v2/models/echo/infer;x",
    "/v2/models/echo;x/infer",
    "/v2/models/echo/infer/",
    "/v2/models/echo/infer?",
    "/v2/models/echo/infer?x=1",
    "/v2/models/echo/infer#x",
    "/v2/./models/echo/infer",
    "/v2/models/echo/./infer",
    "/v2/x/../models/echo/infer",
    "/v2/health/../models/echo/infer",
    "/v2/models/stats/../echo/infer",
    "/v2/models/stats/%2e%2e/echo/infer",
    "/v2/models%2Fecho%2Finfer",
    "/v2/models/echo%2Finfer",
    "%2Fv2/models/echo/infer",
    "/v2/models/echo/infer%00",
    "/v2/models/echo%00/infer",
    "/v2/models/echo/infer%20",
    "/v2/models/echo/infer%0d%0a",
    "/V2/models/echo/infer",
    "/v2/MODELS/echo/infer",
    "/v2/models/echo/INFER",
    "/v2\\models\\echo\\infer",
    "v2/models/echo/infer",
    "http://127.0.0.1/v2/models/echo/infer",
    "http://127.0.0.1/v2/models/echo/%69nfer",
    "http://127.0.0.1//v2/models/echo/infer",
    "*",
]
METHODS = ["POST", "GET", "PUT", "HEAD", "PATCH", "DELETE", "OPTIONS", "post"]


@pytest.fixture(scope="module")
def restricted(written: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A server where inferences and statistics need a header."""
    folder = tmp_path_factory.mktemp("restricted")
    shutil.copytree(written / "echo", folder / "models" / "echo")
    words = [f"--http-restricted-api={api}:for-{api}=secret" for api in ("inference", "statistics")]
    with ending_well(Running(folder / "models", folder / "log", *words)) as running:
        yield running


def status(running: Running, method: str, target: str) -> int:
    """The status of the answer to this request line as it stands."""
    connection = http.client.HTTPConnection("127.0.0.1", running.port, timeout=PATIENCE)
    try:
        connection.putrequest(method, target, skip_accept_encoding=True)
        connection.putheader("Content-Length", str(len(BODY)))
        connection.endheaders(BODY.encode())
        return connection.getresponse().status
    finally:
        connection.close()


@pytest.mark.parametrize("method", METHODS)
def test_no_spelling_of_a_restricted_path_reaches_a_model(restricted: Running, method: str) -> None:
    answered = {target: status(restricted, method, target) for target in SPELLINGS}
    received = restricted.ask("GET", "/v2/models/echo/stats", headers=KEY).document["model_stats"][0]["inference_stats"]

    assert {target: each for target, each in answered.items() if not 400 <= each < 500} == {}
    assert method != "POST" or [answered[target] for target in PLAIN] == [403] * len(PLAIN)
    assert [received[outcome]["count"] for outcome in ("success", "fail")] == [0, 0]
