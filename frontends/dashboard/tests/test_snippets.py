"""Snippets: each does what the page did, which a shell, Python and protobuf say."""

import base64
import io
import json
import shlex
import subprocess
import sys

import numpy as np
import pytest
from google.protobuf import json_format
from tritonclient.grpc import service_pb2

import naiad_dashboard
import naiad_grpc
import naiad_http
from naiad.reports import ModelMetadata, TensorMetadata
from naiad_dashboard.snippets import Endpoints, Trial, curl, grpcurl, python
from naiad_dashboard.trials import read_request
from naiad_testing import serve
from naiad_testing.backends import FakeBackend

AT = Endpoints("localhost:8000", "localhost:8001")
OWN = {"Content_Type": "application/json", "naiad_dashboard": "1"}


def trial(datatype="FP32", shape=(-1,), decoupled=False, parameters=None, **entry):
    metadata = ModelMetadata("it's", (1,), "", (TensorMetadata("X", datatype, shape),), ())
    document = {"inputs": {"X": {"kind": "values", "value": "1", **entry}}, "parameters": parameters or {}}
    return Trial(read_request(document, metadata, 3), document, decoupled)


@pytest.fixture(scope="module")
def ports(tmp_path_factory):
    """A server with both protocols over a model whose OUTPUT begins its IMAGE."""
    backend = FakeBackend()
    models = tmp_path_factory.mktemp("models")
    backend.write(models, "m", 'input { name: "IMAGE" data_type: TYPE_FP32 dims: [ 3, 4, 4 ] }')
    backend.answer = lambda batch: {"OUTPUT": batch.input("IMAGE").ravel()[:4]}
    options = {"http-port": 0, "grpc-port": 0, "allow-dashboard": False}
    with serve(models, plugins=[backend, naiad_http, naiad_grpc, naiad_dashboard], options=options) as client:
        frontends = client.server.plugins.frontends()
        yield frontends["http"].port, int(frontends["grpc"].target.rpartition(":")[2])


@pytest.fixture
def image(ports):
    def make(**entry):
        declared = TensorMetadata("IMAGE", "FP32", (3, 4, 4))
        metadata = ModelMetadata("m", (1,), "", (declared,), ())
        document = {"inputs": {"IMAGE": {"kind": "values", "value": "0.1", **entry}}}
        at = Endpoints(f"127.0.0.1:{ports[0]}", f"127.0.0.1:{ports[1]}")
        return Trial(read_request(document, metadata, 1), document, False), at

    return make


def test_the_curl_command_is_answered(image):
    command = curl(*image())

    answer = subprocess.run(["/bin/sh", "-c", command], capture_output=True, text=True, check=True, timeout=60)

    assert json.loads(answer.stdout)["outputs"][0]["data"] == pytest.approx([0.1] * 4)


@pytest.mark.parametrize("protocol", ["http", "grpc"])
def test_the_python_code_is_answered(image, tmp_path, protocol):
    array = np.arange(48.0).reshape(3, 4, 4)
    np.save(tmp_path / "it's.npy", array)
    stream = io.BytesIO()
    np.save(stream, array)
    tried, at = image(kind="npy", value=base64.b64encode(stream.getvalue()).decode(), file="it's.npy")
    code = python(tried, at if protocol == "http" else Endpoints("", at.grpc))

    command = [sys.executable, "-c", code]
    answer = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True, timeout=60)

    assert answer.stdout == "OUTPUT [0. 1. 2. 3.]\n"


def grpc_request(command):
    words = shlex.split(command.replace("\\\n", " "))
    return words, json_format.Parse(words[words.index("-d") + 1], service_pb2.ModelInferRequest())


def test_the_grpcurl_command_is_the_same_request():
    parameters = {"priority": 2, "sequence_id": 7, "sequence_start": True, "temperature": 0.5, "name": "x"}
    words, request = grpc_request(grpcurl(trial(value="nan 2", parameters=parameters), AT))

    assert words[-2:] == ["localhost:8001", "inference.GRPCInferenceService/ModelInfer"]
    assert (request.model_name, request.model_version) == ("it's", "3")
    assert np.isnan(request.inputs[0].contents.fp32_contents[0])
    assert request.parameters["priority"].uint64_param == 2
    assert request.parameters["sequence_id"].int64_param == 7
    assert request.parameters["temperature"].double_param == 0.5


@pytest.mark.parametrize(
    ("datatype", "value", "raw"),
    [("BF16", "1.5", b"\xc0\x3f"), ("FP16", "1", b"\x00\x3c")],
)
def test_values_that_json_has_no_form_for_go_as_bytes(datatype, value, raw):
    _, request = grpc_request(grpcurl(trial(datatype, value=value), AT))

    assert list(request.raw_input_contents) == [raw]
    assert curl(trial(datatype, value=value), AT).startswith("#")


@pytest.mark.parametrize("datatype", ["BOOL", "INT8", "INT64", "UINT16", "UINT64", "FP64", "BYTES"])
def test_every_datatype_has_its_contents(datatype):
    _, request = grpc_request(grpcurl(trial(datatype, value='["1"]' if datatype == "BYTES" else "1"), AT))

    ((_, contents),) = request.inputs[0].contents.ListFields()
    assert list(contents) in ([1], [True], [b"1"])


def test_a_decoupled_model_is_streamed():
    stream = trial("BYTES", (1,), decoupled=True, kind="text", value="it's")

    assert curl(stream, AT).startswith("curl -s -N http://localhost:8000/v2/models/it%27s/versions/3/generate_stream ")
    assert json.loads(shlex.split(curl(stream, AT).replace("\\\n", " "))[-1]) == {"X": ["it's"]}
    assert "ModelStreamInfer" in grpcurl(stream, AT)
    compile(python(stream, AT), "snippet", "exec")
    assert "tritonclient.grpc" in python(stream, AT)


@pytest.mark.parametrize("scale", ["0-255", "0-1", "-1-1", "imagenet"])
@pytest.mark.parametrize("shape", [(3, 2, 2), (-1, 2, 2, 3), (2, 2, 1)])
def test_the_code_for_an_image_does_what_the_server_does(scale, shape):
    pixels = np.arange(12, dtype=np.uint8).reshape(2, 2, 3) * 20
    pixels[..., 1] = pixels[..., 2] = pixels[..., 0]  # grey, as the luma of PIL rounds
    content = base64.b64encode(pixels.tobytes()).decode()
    tried = trial("FP32", shape, kind="image", value=content, height=2, width=2, scale=scale, file="cat.png")
    code = python(tried, AT)
    lines = [line for line in code.splitlines() if line.startswith(("values", "image"))]

    class Image:
        @staticmethod
        def open(name):
            assert name == "cat.png"
            return Image()

        def convert(self, mode):
            self.pixels = pixels[..., 0] if mode == "L" else pixels
            return self

        def resize(self, size):
            assert size == (2, 2)
            return self.pixels

    names = {"np": np, "Image": Image}
    exec("\n".join(lines), names)

    expected = tried.request.inputs["X"]
    assert names["values"].shape == expected.shape
    np.testing.assert_allclose(names["values"], expected.array, rtol=1e-5, atol=1e-6)


def test_what_is_not_served_or_does_not_fit_is_said():
    nowhere = Endpoints("", "")
    long = trial(value="1.5 " * 20_000)

    assert all(write(trial(), nowhere).startswith("#") for write in (curl, python, grpcurl))
    assert curl(long, AT).startswith("#")
    assert grpcurl(long, AT).startswith("#")
    file = trial("BYTES", (1,), kind="file", value=base64.b64encode(b"x").decode(), file="a.bin")
    assert curl(file, AT).startswith("#")
    assert "open('a.bin', 'rb')" in python(file, AT)


def test_the_page_gets_them_with_the_ports_that_are_served(server):
    body = json.dumps({"inputs": {"INPUT": {"kind": "values", "value": "1"}}})

    status, _, text = server.ask("/models/m/versions/1/snippets", "POST", body, **OWN)

    assert (status, set(json.loads(text))) == (200, {"curl", "Python", "grpcurl"})
