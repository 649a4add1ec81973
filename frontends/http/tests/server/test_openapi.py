"""The description and the routes say the same."""

import http.client
import json
import re
from types import SimpleNamespace

import pytest
from jsonschema import Draft202012Validator

from naiad_http.application import operations
from naiad_http.openapi import INFERENCE_PATHS, describe
from naiad_http.openapi_answers import ANSWERS
from naiad_kit.frontends.restrictions import APIS

OPERATIONS = operations(SimpleNamespace(service=lambda kind: None), 0, lambda: False)
DOCUMENT = describe(OPERATIONS)
ROUTES = {(each.method, each.path.replace(":text}", "}")) for each in OPERATIONS} | {
    ("POST", p) for p in INFERENCE_PATHS
}


def described():
    return {(method.upper(), path) for path, methods in DOCUMENT["paths"].items() for method in methods}


def test_every_route_is_described_and_nothing_else():
    assert described() == ROUTES


@pytest.mark.parametrize("path", DOCUMENT["paths"])
def test_the_variables_of_a_path_are_declared(path):
    for operation in DOCUMENT["paths"][path].values():
        declared = {each["name"] for each in operation["parameters"] if each["in"] == "path"}

        assert declared == set(re.findall(r"{(\w+)}", path))
        assert operation["summary"]
        assert operation["tags"][0] in APIS


def test_every_operation_has_an_id_of_its_own():
    ids = [each["operationId"] for methods in DOCUMENT["paths"].values() for each in methods.values()]

    assert len(ids) == len(set(ids))
    assert "post_v2_models_model_infer" in ids
    assert all(re.fullmatch(r"\w+", each) for each in ids)


def test_every_reference_leads_somewhere():
    references = set(re.findall(r"#/components/schemas/(\w+)", json.dumps(DOCUMENT)))

    assert references <= set(DOCUMENT["components"]["schemas"])


def test_it_is_served_and_its_paths_answer_as_it_says(server):
    connection = http.client.HTTPConnection(*server.address, timeout=20)
    connection.request("GET", "/openapi.json")
    served = json.loads(connection.getresponse().read())
    statuses = {}
    checked = set()
    for method, path in sorted(ROUTES):
        filled = path.format(model="add_sub", version="1", repository="r", region="s")
        connection.request(method, filled, b'{"inputs":[]}' if method == "POST" else None)
        answer = connection.getresponse()
        body = answer.read()
        statuses[method, path] = 200 if b"shared memory region: 's'" in body else answer.status
        content = DOCUMENT["paths"][path][method.lower()]["responses"]["200"].get("content", {})
        if answer.status == 200 and answer.headers["Content-Type"] == "application/json":
            schema = content["application/json"]["schema"] | {"components": DOCUMENT["components"]}
            Draft202012Validator(schema).validate(json.loads(body))
            checked.add(schema.get("$ref", "").rpartition("/")[2])
        elif answer.status == 200:
            assert bool(body) == bool(content), path
    connection.close()

    assert served == DOCUMENT
    assert checked >= ANSWERS.keys()
    assert not {route: status for route, status in statuses.items() if status in (404, 405, 500)}
