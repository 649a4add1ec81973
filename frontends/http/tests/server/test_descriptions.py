"""The page at `/`, the descriptions of models, and the headers for pages of other origins, over a real server."""

import json

import naiad_dashboard
from naiad_http.api_pages import PAGE_HEADERS

BODY = json.dumps(
    {"inputs": [{"name": name, "datatype": "FP32", "shape": [1, 4], "data": [1, 2, 3, 4]} for name in ("A", "B")]}
)
ORIGIN = "https://app.example"


def test_the_root_is_json_for_programs_and_a_page_for_browsers(server):
    status, headers, body = server.ask("GET", "/")
    assert (status, headers["content-type"]) == (200, "application/json")
    assert json.loads(body)["docs"] == "/docs"
    assert json.loads(body)["dashboard"] is None

    _, headers, page = server.ask("GET", "/", headers={"Accept": "text/html,*/*;q=0.8"})
    assert headers["content-type"] == "text/html; charset=utf-8"
    assert headers["content-security-policy"] == PAGE_HEADERS["Content-Security-Policy"]
    assert b"Dashboard: not served" in page
    assert b'<a href="docs/add_sub">add_sub</a>' in page


def test_the_root_points_to_the_dashboard_while_it_listens(start_server):
    server = start_server(beside=(naiad_dashboard,), **{"dashboard-port": 0})
    port = server.client.server.plugins.frontends()["dashboard"].port

    assert json.loads(server.ask("GET", "/")[2])["dashboard"] == f"http://127.0.0.1:{port}/"


def test_a_dashboard_for_all_addresses_is_at_the_host_that_the_browser_knows(start_server):
    options = {"dashboard-port": 0, "dashboard-address": "0.0.0.0", "dashboard-root-path": "/naiad"}
    server = start_server(beside=(naiad_dashboard,), **options)
    port = server.client.server.plugins.frontends()["dashboard"].port

    answer = json.loads(server.ask("GET", "/", headers={"Host": "models.example:8000"})[2])
    assert answer["dashboard"] == f"http://models.example:{port}/naiad/"


def test_a_request_made_of_a_models_description_is_answered(server):
    document = json.loads(server.ask("GET", "/v2/models/add_sub/openapi.json")[2])

    for action in ("infer", "generate"):
        operation = document["paths"][f"/v2/models/add_sub/{action}"]["post"]
        example = operation["requestBody"]["content"]["application/json"]["example"]
        headers = {"Content-Type": "application/json"}
        status, _, _ = server.ask("POST", f"/v2/models/add_sub/{action}", json.dumps(example), headers)
        assert (status, operation["operationId"]) == (200, f"{action}_add_sub")


def test_every_model_is_linked_from_the_page_and_has_one(server):
    _, headers, page = server.ask("GET", "/docs")

    assert headers["content-security-policy"].startswith("default-src 'none'")
    assert b'href="docs/add_sub"' in page
    assert b"infer_add_sub" in server.ask("GET", "/docs/add_sub")[2]
    assert server.ask("GET", "/docs/none")[0] == 404


def test_without_the_option_no_other_origin_may_call(server):
    _, headers, _ = server.ask("POST", "/v2/models/add_sub/infer", BODY, {"Origin": ORIGIN})
    assert not [name for name in headers if name.startswith("access-control")]

    preflight = {"Origin": ORIGIN, "Access-Control-Request-Method": "POST"}
    status, headers, _ = server.ask("OPTIONS", "/v2/models/add_sub/infer", headers=preflight)
    assert status == 405
    assert not [name for name in headers if name.startswith("access-control")]


def test_with_the_option_every_answer_and_preflight_allows_the_origin(start_server):
    server = start_server(**{"http-allow-origin": ORIGIN})
    stream = json.dumps({"A": [1, 2, 3, 4], "B": [1, 2, 3, 4]})
    requests = [
        ("POST", "/v2/models/add_sub/infer", BODY, {}),
        ("POST", "/v2/models/add_sub/infer", BODY, {"Accept-Encoding": "gzip"}),
        ("POST", "/v2/models/add_sub/infer", "{", {}),
        ("POST", "/v2/models/add_sub/generate_stream", stream, {}),
        ("GET", "/v2", None, {}),
        ("GET", "/none", None, {}),
    ]

    for method, path, body, headers in requests:
        answered = server.ask(method, path, body, {"Origin": ORIGIN, **headers})[1]
        assert answered["access-control-allow-origin"] == ORIGIN, path
    preflight = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "content-type,x"}
    status, headers, _ = server.ask("OPTIONS", "/v2/models/add_sub/infer", headers={"Origin": ORIGIN, **preflight})
    assert (status, headers["access-control-allow-origin"]) == (200, ORIGIN)
    assert headers["access-control-allow-headers"] == "content-type,x"
    assert "access-control-allow-credentials" not in headers
    assert server.ask("OPTIONS", "/v2")[0] == 405
