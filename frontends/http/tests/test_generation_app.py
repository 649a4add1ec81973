"""generate and generate_stream under any ASGI server."""

import asyncio
import json
import threading

import pytest

from naiad.errors import ModelFailedError, QueueFullError
from naiad_http.application import make_application, operations
from naiad_http.generate import responses
from naiad_http.request_heads import RequestHeadReader
from naiad_http.restrictions import Restrictions
from naiad_kit.metrics import MetricFamily, Sample


class Exchange:
    """One ASGI request that runs beside the test. `room` unset keeps the ASGI server from taking more."""

    def __init__(self, application, action, document, headers, method):
        scope = {"type": "http", "method": method, "path": f"/v2/models/m/{action}", "headers": headers}
        self._body = [{"type": "http.request", "body": json.dumps(document).encode(), "more_body": False}]
        self.disconnected = asyncio.Event()
        self.room = asyncio.Event()
        self.room.set()
        self.breaks = False
        self.sent = []
        self.task = asyncio.ensure_future(application(scope, self._receive, self._send))

    async def _receive(self):
        if self._body:
            return self._body.pop()
        await self.disconnected.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message):
        if self.breaks:
            raise OSError("the client is gone")
        self.sent.append(message)
        await self.room.wait()

    async def settle(self):
        """Let the application do what it can."""
        for _ in range(10):
            await asyncio.sleep(0)

    @property
    def status(self):
        return self.sent[0]["status"]

    @property
    def headers(self):
        return {name.decode(): value.decode() for name, value in self.sent[0]["headers"]}

    @property
    def pieces(self):
        return [message["body"] for message in self.sent[1:]]

    @property
    def texts(self):
        events = b"".join(self.pieces).decode().split("\n\n")[:-1]
        documents = [json.loads(event.removeprefix("data: ")) for event in events]
        return [document.get("TEXT", document) for document in documents]


@pytest.fixture
def talk(make_context, fake_server):
    """Run a coroutine function of the test with the exchange it asks for, and the call that this makes, if any."""

    def talk(script, action="generate_stream", document=(), headers=(), method="POST", rules=()):
        async def run():
            restrictions = Restrictions(rules)
            request_heads = RequestHeadReader("", restrictions)
            every = operations(fake_server, 1_000_000, lambda: False)
            application = make_application(every, make_context(), request_heads, restrictions, {})
            exchange = Exchange(application, action, dict(document), list(headers), method)
            await exchange.settle()
            await script(exchange, fake_server.calls[0] if fake_server.calls else None)
            await asyncio.wait_for(exchange.task, 20)
            return exchange

        return asyncio.run(run())

    return talk


def test_responses_are_events_and_those_that_come_together_one_piece(talk):
    async def script(exchange, call):
        call.send("one", "two")
        await exchange.settle()
        call.send("three", final=True)

    exchange = talk(script)

    assert (exchange.status, exchange.headers["content-type"]) == (200, "text/event-stream; charset=utf-8")
    assert (exchange.headers["cache-control"], exchange.headers["x-accel-buffering"]) == ("no-cache", "no")
    assert (exchange.texts, len(exchange.pieces)) == (["one", "two", "three"], 2)
    assert [message["more_body"] for message in exchange.sent[1:]] == [True, False]


def test_nothing_is_sent_before_the_first_response(talk):
    before = []

    async def script(exchange, call):
        before.extend(exchange.sent)
        call.end()

    exchange = talk(script)

    assert (before, exchange.status, exchange.pieces) == ([], 200, [b""])


def test_an_error_in_front_of_all_responses_has_its_status(talk):
    async def script(_exchange, call):
        call.deliver(QueueFullError("full"))

    exchange = talk(script, document={"id": "7"})

    assert (exchange.status, exchange.headers["content-type"]) == (503, "text/event-stream; charset=utf-8")
    assert exchange.pieces[0] == b'data: {"error":"[request id: 7] full"}\n\n'


def test_an_error_within_the_stream_is_its_last_event(talk):
    async def script(exchange, call):
        call.send("one")
        await exchange.settle()
        call.deliver(ModelFailedError("broke"))
        call.send("never sent")

    assert talk(script).texts == ["one", {"error": "broke"}]


@pytest.mark.parametrize("action", ["generate", "generate_stream"])
def test_the_request_of_a_client_that_left_is_taken_back(talk, fake_server, action):
    async def script(exchange, call):
        call.send("one")
        await exchange.settle()
        exchange.disconnected.set()

    talk(script, action)

    assert fake_server.calls[0].cancelled


def test_an_asgi_server_that_says_so_with_an_error_is_understood(talk, fake_server):
    async def script(exchange, call):
        exchange.breaks = True
        call.send("one")

    talk(script)

    assert fake_server.calls[0].cancelled


def test_a_slow_reader_lets_its_model_wait(talk, fake_server):
    waited = []

    async def script(exchange, call):
        exchange.room.clear()
        for number in range(1000):
            await exchange.settle()
            if call.paused:
                break
            call.send(str(number))
        waited.append(call.paused)
        exchange.room.set()
        await exchange.settle()
        waited.append(call.paused)
        call.end()

    exchange = talk(script)

    assert waited == [True, False]
    assert 10 < len(exchange.texts) < 100


def test_generate_answers_with_its_one_response(talk):
    async def script(exchange, call):
        call.send("one")
        await exchange.settle()
        assert exchange.sent == []
        call.end()

    exchange = talk(script, "generate")

    assert (exchange.status, exchange.headers["content-type"]) == (200, "application/json")
    assert json.loads(exchange.pieces[0])["TEXT"] == "one"


@pytest.mark.parametrize("action", ["generate", "generate_stream"])
def test_who_asks_for_it_is_reported_the_load(talk, fake_server, action):
    blocks = [
        Sample((("kv_cache_block_type", kind),), value)
        for kind, value in {"used": 1, "max": 4, "tokens_per": 2}.items()
    ]
    family = MetricFamily("nv_trt_llm_kv_cache_block_metrics", "", "gauge", blocks)
    fake_server.metrics.collect_made_by_models = lambda: [family]

    async def script(_exchange, call):
        call.send("one", final=True)

    exchange = talk(script, action, headers=[(b"endpoint-load-metrics-format", b"json")])

    assert exchange.headers["endpoint-load-metrics"].startswith('JSON {"named_metrics":')


def test_generate_takes_the_request_back_when_a_second_response_comes(talk, fake_server):
    async def script(_exchange, call):
        call.send("one", "two")

    exchange = talk(script, "generate")

    assert (exchange.status, fake_server.calls[0].cancelled) == (400, True)


@pytest.mark.parametrize(
    ("options", "status"),
    [
        ({"document": {"X": "text"}}, 400),
        ({"headers": [(b"content-encoding", b"gzip")]}, 400),
        ({"rules": ["inference:key=open"]}, 403),
        ({"method": "GET"}, 405),
    ],
)
@pytest.mark.parametrize("action", ["generate", "generate_stream"])
def test_what_is_refused_is_refused_in_json(talk, fake_server, action, options, status):
    async def script(_exchange, _call):
        pass

    exchange = talk(script, action, **options)

    assert (exchange.status, exchange.headers["content-type"]) == (status, "application/json")
    assert json.loads(exchange.pieces[0])["error"]
    assert fake_server.calls == []


@pytest.mark.parametrize("action", ["generate", "generate_stream"])
def test_a_large_output_leaves_the_event_loop(talk, monkeypatch, action):
    threads = []

    def document_of(*of):
        text = document(*of)
        threads.append(threading.current_thread().name)
        return text

    document = responses.document_of
    monkeypatch.setattr(responses, "document_of", document_of)

    async def script(exchange, call):
        call.send("x" * 2_000_000, final=True)

    exchange = talk(script, action)

    assert exchange.status == 200
    assert [name.startswith("naiad-http-codec") for name in threads] == [True]
    assert len(b"".join(exchange.pieces)) > 2_000_000


@pytest.mark.parametrize("action", ["generate", "generate_stream"])
def test_a_thread_that_cannot_start_is_reported_with_its_remedy(talk, monkeypatch, action):
    def refuse(_thread):
        raise RuntimeError("can't start new thread")

    async def script(exchange, call):
        monkeypatch.setattr(threading.Thread, "start", refuse)
        call.send("x" * 2_000_000, final=True)

    exchange = talk(script, action)

    assert b"no thread can be started (can't start new thread); raise ulimit -u" in b"".join(exchange.pieces)
