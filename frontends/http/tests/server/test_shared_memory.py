"""Documents of the shared memory routes that are invalid; what is valid is in the table of all frontends."""

import base64
import json

import pytest


@pytest.fixture
def server(start_server):
    """A running server that lets clients register shared memory."""
    return start_server(**{"allow-client-shm": True})


HANDLE = base64.b64encode(bytes(64)).decode()
WRONG = {
    "no body": ("system", None, 400, "Shared memory register request has no 'key' field"),
    "no key": ("system", {"byte_size": 8}, 400, "Shared memory register request has no 'key' field"),
    "no size": ("system", {"key": "/k"}, 400, "Shared memory register request has no 'byte_size' field"),
    "key a number": ("system", {"key": 1, "byte_size": 8}, 400, "'key': it must be a string"),
    "offset negative": ("system", {"key": "/k", "offset": -1, "byte_size": 8}, 400, "'offset': it must be an integer"),
    "no such segment": ("system", {"key": "/naiad_none", "byte_size": 8}, 404, "region: '/naiad_none'"),
    "no key in the key": ("system", {"key": "//", "byte_size": 8}, 400, "invalid shm key '//'"),
    "no object": ("system", [], 400, "'request': it must be an object"),
    "no handle": ("cuda", {"device_id": 0, "byte_size": 8}, 400, "request has no 'raw_handle' field"),
    "no device": ("cuda", {"raw_handle": {"b64": HANDLE}, "byte_size": 8}, 400, "request has no 'device_id' field"),
    "no cuda size": ("cuda", {"raw_handle": {"b64": HANDLE}, "device_id": 0}, 400, "request has no 'byte_size' field"),
    "no base64": ("cuda", {"raw_handle": {"b64": "?"}, "device_id": 0, "byte_size": 8}, 400, "is not valid base64"),
    "empty handle": ("cuda", {"raw_handle": {}, "device_id": 0, "byte_size": 8}, 400, "request has no 'b64' field"),
}


@pytest.mark.parametrize(("kind", "document", "status", "message"), WRONG.values(), ids=WRONG.keys())
def test_a_wrong_registration_is_refused_with_what_is_wrong(server, kind, document, status, message):
    body = None if document is None else json.dumps(document)

    got, _, answer = server.ask("POST", f"/v2/{kind}sharedmemory/region/r/register", body)

    assert got == status
    assert message in json.loads(answer)["error"]


@pytest.mark.parametrize(
    ("method", "action", "body"),
    [("POST", "unregister", None), ("GET", "status", None), ("POST", "register", b'{"key":"/k","byte_size":1}')],
)
def test_an_empty_name_does_not_mean_all_regions(server, method, action, body):
    assert server.ask(method, f"/v2/systemsharedmemory/region//{action}", body)[0] == 404
