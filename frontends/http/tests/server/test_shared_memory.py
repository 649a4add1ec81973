"""The shared memory routes of a whole server, and requests that name regions."""

import base64
import json
import re
from pathlib import Path
from uuid import uuid4

import numpy as np
import pytest


@pytest.fixture
def segment():
    """A segment of 64 bytes, 0 to 63; its key is its name in the folder of segments."""
    path = Path(f"/dev/shm/naiad_test_{uuid4().hex}")
    path.write_bytes(bytes(range(64)))
    yield path
    path.unlink(missing_ok=True)


@pytest.fixture
def server(start_server):
    """A running server that lets clients register shared memory."""
    return start_server(**{"allow-client-shm": True})


def post(server, path, document=None, **headers):
    status, _, body = server.ask("POST", path, json.dumps(document) if document is not None else None, headers)
    return status, json.loads(body)["error"] if body else ""


def get(server, path):
    status, _, body = server.ask("GET", path)
    return status, json.loads(body)


def register(server, segment, name="r", **members):
    document = {"key": f"/{segment.name}", "byte_size": 64, **members}
    assert post(server, f"/v2/systemsharedmemory/region/{name}/register", document) == (200, "")


def infer(server, document, model="mirror_int8"):
    status, headers, body = server.ask("POST", f"/v2/models/{model}/infer", json.dumps(document))
    return status, headers, json.loads(body)


def location(region="r", byte_size=4, offset=0):
    return {
        "shared_memory_region": region,
        "shared_memory_byte_size": byte_size,
        "shared_memory_offset": offset,
    }


def mirrored(given, wanted):
    return {
        "inputs": [{"name": "X", "datatype": "INT8", "shape": [4], "parameters": given}],
        "outputs": [{"name": "Y", "parameters": wanted}],
    }


def test_a_region_is_registered_told_and_unregistered(server, segment):
    register(server, segment, offset=8, byte_size=16)
    region = {"name": "r", "key": f"/{segment.name}", "offset": 8, "byte_size": 16}

    assert get(server, "/v2/systemsharedmemory/status") == (200, [region])
    assert get(server, "/v2/systemsharedmemory/region/r/status") == (200, [region])
    assert get(server, "/v2/cudasharedmemory/status") == (200, [])
    assert post(server, "/v2/systemsharedmemory/region/r/unregister") == (200, "")
    assert get(server, "/v2/systemsharedmemory/status") == (200, [])


def test_all_regions_are_unregistered_at_once(server, segment):
    register(server, segment, "a")
    register(server, segment, "b")

    assert post(server, "/v2/cudasharedmemory/unregister") == (200, "")
    assert len(get(server, "/v2/systemsharedmemory/status")[1]) == 2
    assert post(server, "/v2/systemsharedmemory/unregister") == (200, "")
    assert get(server, "/v2/systemsharedmemory/status") == (200, [])


def test_a_name_may_have_any_characters(server, segment):
    register(server, segment, "a/b%20%C3%BC")

    assert get(server, "/v2/systemsharedmemory/region/a%2Fb%20%C3%BC/status")[1][0]["name"] == "a/b ü"


def test_an_empty_name_does_not_mean_all_regions(server, segment):
    register(server, segment)

    assert post(server, "/v2/systemsharedmemory/region//unregister")[0] == 404
    assert get(server, "/v2/systemsharedmemory/region//status")[0] == 404
    assert post(server, "/v2/systemsharedmemory/region//register", {"key": "/k", "byte_size": 1})[0] == 404
    assert len(get(server, "/v2/systemsharedmemory/status")[1]) == 1


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
    got, error = post(server, f"/v2/{kind}sharedmemory/region/r/register", document)

    assert got == status
    assert message in error


def test_a_taken_name_an_unknown_region_and_the_wrong_kind_are_told_apart(server, segment):
    register(server, segment)

    assert post(server, "/v2/systemsharedmemory/region/r/register", {"key": f"/{segment.name}", "byte_size": 8}) == (
        400,
        "shared memory region 'r' already in manager; unregister it first, or take another name",
    )
    assert get(server, "/v2/systemsharedmemory/region/none/status") == (
        404,
        {"error": "Unable to find system shared memory region: 'none'"},
    )
    assert get(server, "/v2/cudasharedmemory/region/r/status") == (
        404,
        {"error": "The region named 'r' is registered as system shared memory, not CUDA shared memory"},
    )


def test_a_handle_that_cannot_be_opened_is_an_error_that_names_the_region(server):
    document = {"raw_handle": {"b64": HANDLE}, "device_id": 0, "byte_size": 8}

    status, error = post(server, "/v2/cudasharedmemory/region/r/register", document)

    assert status == 400
    assert re.match("failed to register CUDA shared memory region:? 'r'", error)


def test_clients_may_not_register_unless_the_option_says_so(start_server, segment):
    server = start_server()
    document = {"key": f"/{segment.name}", "byte_size": 8}

    for path, given in (
        ("/v2/systemsharedmemory/region/r/register", document),
        ("/v2/systemsharedmemory/region/r/unregister", None),
        ("/v2/systemsharedmemory/unregister", None),
        ("/v2/cudasharedmemory/unregister", None),
    ):
        status, error = post(server, path, given)
        assert status == 501
        assert "Start the server with '--allow-client-shm=true' to enable" in error
    assert get(server, "/v2/systemsharedmemory/status") == (200, [])


def test_without_the_plugin_shared_memory_is_refused_and_everything_else_works(start_server):
    server = start_server(beside=())
    region = "/v2/systemsharedmemory/region/r"
    plain = {"inputs": [{"name": "X", "datatype": "INT8", "shape": [4], "data": [1, 2, 3, 4]}]}
    named = [mirrored(location(), {}), {**plain, "outputs": [{"name": "Y", "parameters": location()}]}]

    refused = [
        post(server, f"{region}/register", {"key": "/k", "byte_size": 64}),
        post(server, f"{region}/unregister"),
        post(server, "/v2/cudasharedmemory/unregister"),
        *(post(server, "/v2/models/mirror_int8/infer", document) for document in named),
    ]
    status, error = get(server, "/v2/cudasharedmemory/status")
    answer = infer(server, plain)

    for each in (*refused, (status, error["error"])):
        assert each[0] == 501
        assert "It comes with naiad-shared-memory: pip install 'naiad-shared-memory'" in each[1]
    assert (answer[0], answer[2]["outputs"][0]["data"]) == (200, [1, 2, 3, 4])
    assert not any("shared_memory" in name for name in get(server, "/v2")[1]["extensions"])


def test_shared_memory_can_be_restricted(start_server):
    server = start_server(**{"http-restricted-api": ("shared-memory:key=secret",), "allow-client-shm": True})

    assert get(server, "/v2/systemsharedmemory/status")[0] == 403
    assert post(server, "/v2/cudasharedmemory/unregister")[0] == 403
    assert post(server, "/v2/cudasharedmemory/unregister", key="secret") == (200, "")


def test_tensors_stay_in_shared_memory(server, segment):
    register(server, segment)

    status, headers, document = infer(server, mirrored(location(offset=8), location(offset=32)))

    assert (status, headers["content-type"]) == (200, "application/json")
    assert document["outputs"] == [{"name": "Y", "datatype": "INT8", "shape": [4]}]
    assert segment.read_bytes() == bytes(range(32)) + bytes(range(8, 12)) + bytes(range(36, 64))


def test_an_output_that_does_not_fit_is_an_error_of_the_client(server, segment):
    register(server, segment)

    status, _, document = infer(server, {"id": "7", **mirrored(location(), location(byte_size=3, offset=32))})

    assert status == 400
    assert document["error"].startswith(
        "[request id: 7] shared memory size specified with the request for output 'Y' (3 bytes) should be at least 4"
    )
    assert segment.read_bytes() == bytes(range(64))


@pytest.mark.parametrize(
    ("wrong", "status", "message"),
    [
        (location("none"), 404, "Unable to find shared memory region: 'none'"),
        (location(offset=64), 400, "Invalid offset for shared memory region: 'r'"),
        (location(offset=61), 400, "Invalid offset + byte size for shared memory region: 'r'"),
    ],
)
def test_an_invalid_location_is_refused_before_the_model_runs(server, segment, wrong, status, message):
    register(server, segment)

    for document in (mirrored(wrong, location()), mirrored(location(), wrong)):
        got, _, answer = infer(server, document)
        assert got == status
        assert message in answer["error"]
    assert get(server, "/v2/models/mirror_int8/stats")[1]["model_stats"][0]["execution_count"] == 0


def test_a_segment_that_shrinks_while_the_model_runs_is_an_error(server, segment):
    register(server, segment)
    document = {"parameters": {"wait": True}, **mirrored(location(), location(offset=32))}
    text = json.dumps(document).encode()
    with server.connect() as wire:
        wire.send(
            b"POST /v2/models/mirror_int8/infer HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n\r\n%b" % (len(text), text)
        )
        assert server.gate.entered.wait(20)
        segment.write_bytes(b"short")
        server.gate.opened.set()

        status, _, body = wire.answer()

    assert status == 400
    assert "region 'r' is not all there any more" in json.loads(body)["error"]
    assert segment.read_bytes() == b"short"


def test_a_region_that_is_unregistered_while_the_model_runs_still_takes_the_answer(server, segment):
    register(server, segment)
    text = json.dumps({"parameters": {"wait": True}, **mirrored(location(), location(offset=32))}).encode()
    with server.connect() as wire:
        wire.send(
            b"POST /v2/models/mirror_int8/infer HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n\r\n%b" % (len(text), text)
        )
        assert server.gate.entered.wait(20)
        assert post(server, "/v2/systemsharedmemory/region/r/unregister") == (200, "")
        server.gate.opened.set()

        assert wire.answer()[0] == 200

    assert segment.read_bytes()[32:36] == bytes(range(4))


def test_the_answer_to_a_client_that_left_is_not_written(server, segment):
    register(server, segment)
    text = json.dumps({"parameters": {"wait": True}, **mirrored(location(), location(offset=32))}).encode()
    with server.connect() as wire:
        wire.send(
            b"POST /v2/models/mirror_int8/infer HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n\r\n%b" % (len(text), text)
        )
        assert server.gate.entered.wait(20)
    assert get(server, "/v2/systemsharedmemory/status")[0] == 200

    server.gate.opened.set()
    status, _, _ = infer(server, mirrored(location(), location(offset=40)))

    assert status == 200
    assert segment.read_bytes()[32:36] == bytes(range(32, 36))


def test_large_tensors_come_back_the_same(server):
    path = Path(f"/dev/shm/naiad_test_{uuid4().hex}")
    sent = np.random.default_rng(1).random(150_000, np.float32)
    path.write_bytes(sent.tobytes() + bytes(sent.nbytes))
    try:
        register(server, path, byte_size=2 * sent.nbytes)
        document = {
            "inputs": [
                {"name": "X", "datatype": "FP32", "shape": [150_000], "parameters": location(byte_size=sent.nbytes)}
            ],
            "outputs": [{"name": "Y", "parameters": location(byte_size=sent.nbytes, offset=sent.nbytes)}],
        }

        status, _, _ = infer(server, document, "mirror_fp32")

        assert status == 200
        assert np.array_equal(np.fromfile(path, np.float32, offset=sent.nbytes), sent)
    finally:
        path.unlink()
