"""The OpenAPI description of a model: its schemas hold what the model takes, and its examples fit them."""

import json
import re

import pytest

from naiad.reports import ModelMetadata, TensorMetadata
from naiad_http.api_pages import api_page, root_page
from naiad_http.model_openapi import describe_model

EVIL = "<script>alert(1)</script>\"'&"


def model(*inputs, name="a model/1", decoupled=False, version=0):
    outputs = (TensorMetadata("OUT", "FP32", (-1, 2)),)
    metadata = ModelMetadata(name, (1, 3), "onnxruntime_onnx", tuple(inputs), outputs)
    return describe_model(metadata, version, decoupled)


NUMBERS = TensorMetadata("X", "FP32", (-1, 4))


def operation(document, action, path="/v2/models/a%20model%2F1"):
    return document["paths"][f"{path}/{action}"]["post"]


def body(document, action):
    return operation(document, action)["requestBody"]["content"]["application/json"]


def test_operations_have_ids_with_the_name_of_the_model():
    document = model(NUMBERS)

    ids = [each["operationId"] for methods in document["paths"].values() for each in methods.values()]
    assert len(set(ids)) == len(ids)
    assert "infer_a_model_1" in ids
    assert operation(model(NUMBERS, version=3), "infer", "/v2/models/a%20model%2F1/versions/3")


def test_what_is_read_of_a_model_has_a_schema_whatever_its_name():
    paths = model(NUMBERS, name="config")["paths"]

    read = {
        path: methods["get"]["responses"]["200"].get("content") for path, methods in paths.items() if "get" in methods
    }
    names = {path: content and content["application/json"]["schema"]["$ref"] for path, content in read.items()}
    assert names == {
        "/v2/models/config": "#/components/schemas/ModelMetadata",
        "/v2/models/config/ready": "#/components/schemas/ModelReady",
        "/v2/models/config/config": "#/components/schemas/ModelConfig",
        "/v2/models/config/stats": "#/components/schemas/Statistics",
    }


def test_examples_fit_their_inputs():
    optional = TensorMetadata("Z", "INT8", (1,), optional=True)
    document = model(NUMBERS, TensorMetadata("Y", "BYTES", (-1, 1)), optional)

    assert body(document, "infer")["example"] == {
        "inputs": [
            {"name": "X", "datatype": "FP32", "shape": [1, 4], "data": [1.0, 2.0, 3.0, 4.0]},
            {"name": "Y", "datatype": "BYTES", "shape": [1, 1], "data": ["text"]},
        ]
    }
    assert body(document, "generate")["example"] == {"X": [1.0, 2.0, 3.0, 4.0], "Y": "text"}


def test_schemas_have_the_shape_and_range_of_each_tensor():
    schemas = model(TensorMetadata("X", "INT8", (-1, 4)))["components"]["schemas"]

    (tensor,) = schemas["Request"]["properties"]["inputs"]["items"]["oneOf"]
    assert tensor["properties"]["datatype"] == {"const": "INT8"}
    assert tensor["properties"]["shape"]["prefixItems"] == [{"type": "integer", "minimum": 0}, {"const": 4}]
    assert tensor["properties"]["data"]["items"] == {"type": "integer", "minimum": -128, "maximum": 127}
    assert schemas["GenerateRequest"]["required"] == ["X"]


@pytest.mark.parametrize("decoupled", [True, False])
def test_a_decoupled_model_only_streams(decoupled):
    actions = {path.rpartition("/")[2] for path in model(NUMBERS, decoupled=decoupled)["paths"]}

    assert "generate_stream" in actions
    assert ("infer" in actions, "generate" in actions) == (not decoupled, not decoupled)


def test_an_image_has_no_example_of_a_megabyte():
    document = model(TensorMetadata("X", "FP32", (-1, 3, 224, 224)))

    assert "example" not in body(document, "infer")
    assert len(json.dumps(document)) < 20_000


def test_the_page_has_everything_as_text():
    document = model(TensorMetadata(EVIL, "FP32", (1,)), name=EVIL)

    page = api_page(document, "../x", [(EVIL, "docs/x")])

    assert not re.search(r"<script|<img|\son\w+=", page)
    assert "&lt;script&gt;" in page
    assert "curl -s localhost:8000/v2/models/%3Cscript%3E" in page
    assert EVIL not in root_page(EVIL, EVIL, EVIL, [(EVIL, "docs/x")])
