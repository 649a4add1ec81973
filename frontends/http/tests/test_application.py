"""The ASGI application by itself, as any ASGI server would call it."""

import asyncio
import gzip
import json
import re
from time import monotonic_ns

import numpy as np
import pytest

from naiad.errors import QueueFullError
from naiad.reports import ServerMetadata
from naiad_http import inference_app
from naiad_http.application import make_application, operations, paths_on_other_ports
from naiad_http.compression import decompress
from naiad_http.request_heads import RequestHeadReader
from naiad_http.restrictions import Restrictions
from naiad_http.route_table import RouteTable

BODY = b'{"id":"9","inputs":[{"name":"X","datatype":"INT8","shape":[2],"data":[1,2]}]}'


class Exchange:
    """One ASGI request: the messages it receives and those it sends; `act` is called when the answer is awaited."""

    def __init__(self, method, path, headers=(), body=b"", pieces=1):
        self.scope = {"type": "http", "method": method, "path": path, "headers": list(headers), "query_string": b""}
        step = max(1, -(-len(body) // pieces))
        parts = [body[index : index + step] for index in range(0, len(body), step)] or [b""]
        self._messages = [
            {"type": "http.request", "body": part, "more_body": index < len(parts) - 1}
            for index, part in enumerate(parts)
        ]
        self.disconnected = asyncio.Event()
        self.act = None
        self.sent = []

    async def receive(self):
        if self._messages:
            return self._messages.pop(0)
        if self.act is not None:
            self.act(self)
        await self.disconnected.wait()
        return {"type": "http.disconnect"}

    async def send(self, message):
        self.sent.append(message)

    @property
    def status(self):
        return self.sent[0]["status"]

    @property
    def headers(self):
        return {name.decode(): value.decode() for name, value in self.sent[0]["headers"]}

    @property
    def body(self):
        return b"".join(message.get("body", b"") for message in self.sent)


@pytest.fixture
def ask(make_context, fake_server):
    """Send one exchange through a new application over the fake server."""

    def ask(exchange, act=None, limit=1000, rules=()):
        restrictions = Restrictions(rules)
        request_heads = RequestHeadReader("^x-", restrictions)
        every = operations(fake_server, limit, lambda: False)
        application = make_application(every, make_context(limit), request_heads, restrictions, {})

        async def run():
            await asyncio.wait_for(application(exchange.scope, exchange.receive, exchange.send), 20)

        exchange.act = act
        asyncio.run(run())
        return exchange

    return ask


def infer(headers=(), body=BODY, **options):
    return Exchange("POST", "/v2/models/m/versions/3/infer", headers, body, **options)


@pytest.mark.parametrize("pieces", [1, 5])
def test_an_infer_request_is_answered_whatever_pieces_it_comes_in(ask, fake_server, pieces):
    fake_server.at_once = True

    exchange = ask(infer(pieces=pieces))

    assert (exchange.status, exchange.headers["content-type"]) == (200, "application/json")
    assert json.loads(exchange.body)["outputs"][0]["data"] == [1, 2]
    assert int(exchange.headers["content-length"]) == len(exchange.body)
    assert (fake_server.calls[0].request.version, fake_server.calls[0].request.id) == (3, "9")


def test_a_binary_answer_says_where_its_bytes_begin(ask, fake_server):
    fake_server.at_once = True
    front = BODY.replace(b'{"id"', b'{"parameters":{"binary_data_output":true},"id"')

    exchange = ask(infer([(b"inference-header-content-length", b"%d" % len(front))], front))

    length = int(exchange.headers["inference-header-content-length"])
    assert exchange.body[length:] == np.array([1, 2], np.int8).tobytes()


def test_a_request_counts_from_its_last_byte_and_not_from_its_decompression(ask, fake_server, monkeypatch):
    fake_server.at_once = True
    begun = []
    monkeypatch.setattr(inference_app, "decompress", lambda *body: begun.append(monotonic_ns()) or decompress(*body))

    ask(infer([(b"content-encoding", b"gzip")], gzip.compress(BODY)))

    assert 0 < fake_server.calls[0].request.received_ns < begun[0]


def test_headers_are_forwarded(ask, fake_server):
    fake_server.at_once = True

    ask(infer([(b"x-tenant", b"blue")]))

    assert fake_server.calls[0].request.parameters == {"x-tenant": "blue"}


def test_the_request_of_a_client_that_left_is_taken_back(ask, fake_server):
    exchange = ask(infer(), act=lambda exchange: exchange.disconnected.set())

    assert fake_server.calls[0].cancelled
    assert exchange.status == 499


def test_an_answer_that_comes_later_is_sent(ask, fake_server):
    exchange = ask(infer(), act=lambda exchange: fake_server.calls[0].answer())

    assert exchange.status == 200


def test_a_client_that_leaves_within_its_body_is_not_waited_for(ask, fake_server):
    exchange = infer(pieces=2)
    exchange._messages.pop()
    exchange.disconnected.set()

    assert ask(exchange).status == 499
    assert fake_server.calls == []


@pytest.mark.parametrize("path", ["/v2/models/m/infer", "/v2/repository/models/m/load"])
def test_too_large_a_body_is_refused(ask, path):
    exchange = ask(Exchange("POST", path, body=bytes(2000), pieces=10))

    assert exchange.status == 400
    assert "--http-max-input-size" in json.loads(exchange.body)["error"]


def test_a_refusal_of_the_server_has_its_status(ask, fake_server):
    fake_server.refusal = QueueFullError("the queue is full")

    exchange = ask(infer())

    assert (exchange.status, exchange.headers["retry-after"]) == (503, "1")


@pytest.mark.parametrize("path", ["/v2/models/m/infer", "/v2"])
def test_a_bug_of_ours_is_a_500_without_its_traceback(ask, fake_server, caplog, path):
    def fail(*_):
        raise ZeroDivisionError("secret detail")

    fake_server.submit = fake_server.metadata = fail

    exchange = ask(Exchange("POST" if "infer" in path else "GET", path, body=BODY))

    assert exchange.status == 500
    assert "secret" not in exchange.body.decode()
    assert "secret detail" in caplog.text


def test_a_restricted_route_asks_for_its_header(ask, fake_server):
    fake_server.metadata = lambda: ServerMetadata("n", "1", ())

    shut = ask(Exchange("GET", "/v2"), rules=["metadata:key=open"])
    opened = ask(Exchange("GET", "/v2", [(b"key", b"open")]), rules=["metadata:key=open"])

    assert (shut.status, opened.status) == (403, 200)
    assert json.loads(shut.body)["error"].endswith("header 'key'")


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/v2/models/m/infer", 405),
        ("PUT", "/v2/models/m/generate", 405),
        ("POST", "/v2/m", 404),
        ("POST", "/v2", 405),
    ],
)
def test_other_methods_and_paths_are_refused_in_json(ask, method, path, status):
    exchange = ask(Exchange(method, path))

    assert exchange.status == status
    assert exchange.headers["content-type"] == "application/json"
    starts = {405: "Method Not Allowed: use POST", 404: "Not Found: models are at /v2/models/NAME/infer"}
    assert json.loads(exchange.body)["error"].startswith(
        starts[status] if path != "/v2" else "Method Not Allowed: use "
    )


@pytest.mark.parametrize("action", ["infer", "generate", "generate_stream"])
def test_a_request_is_traced_under_any_asgi_server(ask, fake_server, action):
    fake_server.tracing.active = True
    body = BODY if action == "infer" else b"{}"
    exchange = Exchange("POST", f"/v2/models/m/{action}", [(b"traceparent", b"00-ab-cd-01")], body)

    ask(exchange, act=lambda _: fake_server.calls[0].send("one", final=True))

    (trace,) = fake_server.tracing.traces
    assert exchange.status == 200
    assert fake_server.tracing.samples == [("m", 0, "9" if action == "infer" else "", "00-ab-cd-01", "")]
    assert trace.events == ["HTTP_RECV_START", "HTTP_RECV_END", "HTTP_SEND_START", "HTTP_SEND_END", "end"]


def test_a_request_of_a_client_that_left_is_traced_to_its_end(ask, fake_server):
    fake_server.tracing.active = True

    ask(infer(), act=lambda exchange: exchange.disconnected.set())

    assert fake_server.tracing.traces[0].events[-1] == "end"


def test_a_405_names_every_method_of_its_path_with_and_without_a_body(ask, fake_server):
    every = operations(fake_server, 0, lambda: False)
    methods = {f"/v2/models/m/{action}": {"POST"} for action in ("infer", "generate", "generate_stream")}
    for operation in every:
        path = re.sub(r"\{\w+\}", "1", operation.path)
        methods.setdefault(path, set()).add(operation.method)
    table = RouteTable(every, Restrictions(()))

    for path, names in methods.items():
        allowed = names | ({"HEAD"} if "GET" in names else set())
        by_routes = ask(Exchange("DELETE", path))
        by_head = table.refusal("DELETE", path.encode(), ())

        assert (by_routes.status, by_head.status) == (405, 405), path
        assert set(by_routes.headers["allow"].split(", ")) == allowed, path
        assert set(dict(by_head.headers)["Allow"].split(", ")) == allowed, path


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"metrics-port": 8002, "allow-metrics": True}, "metrics have a port of their own: GET /metrics at port 8002"),
        ({"metrics-port": 0, "allow-metrics": True}, "at a free port, which the log names"),
        ({"metrics-port": 8002, "allow-metrics": False}, "no metrics, because of --allow-metrics=false"),
        ({}, "no metrics; they come with naiad-metrics"),
    ],
)
def test_the_404_of_metrics_says_where_they_are(settings, message):
    assert message in paths_on_other_ports(settings)["/metrics"]
