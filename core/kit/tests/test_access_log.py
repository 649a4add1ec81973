"""The access log: forms of its lines, their order, and that no line is lost or forged."""

import json
import re
import threading
import time
from collections.abc import Callable
from datetime import datetime
from time import monotonic_ns
from types import SimpleNamespace
from typing import Any

import pytest

from naiad_kit.access_log import AccessLog, address_of

TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7-01"


def lines_of(form: str, record: Callable[[AccessLog], None]) -> list[str]:
    """The lines that the log writes until it is closed, of what `record` records."""
    texts: list[str] = []
    log = AccessLog(form, texts.append).start()
    record(log)
    log.close(30.0)
    return "".join(texts).splitlines()


def record_key(log: AccessLog, key: tuple[Any, ...], began_ns: int, call: Any = None) -> None:
    """Log a request of that peer, protocol, operation, model, version, ID, status, sizes, traceparent; or fewer."""
    form = log.form
    peer, protocol, operation, model, version, *answer, trace = (*key, *NOTHING[len(key) :])
    subject = form.subject(form.caller(peer, protocol, operation, model, version), *answer)
    log.record(subject, form.trace(trace), began_ns, call)


NOTHING = ("-", "http", "", "", 0, "", 200, 0, 0, "")


def record_one(log: AccessLog, request_id: str = "a7", operation: str = "POST /v2", model: str = "fraud") -> None:
    """Log a request that began 10 ms ago, waited for 5, and took 3 in a batch of 4."""
    key = ("127.0.0.1:80", "http", operation, model, 2, request_id, 200, 84, 135, TRACE)
    call = SimpleNamespace(queue_ns=5_000_000, phases=(1_000, 3_000_000, 2_000), joined=(4, "full"))
    record_key(log, key, monotonic_ns() - 10_000_000, call)


def record_peer(log: AccessLog, peer: str) -> None:
    """Log a request of that peer."""
    record_key(log, (peer,), monotonic_ns())


def test_a_line_of_text_has_times_in_microseconds_and_the_trace_id() -> None:
    (line,) = lines_of("text", record_one)

    assert re.fullmatch(
        r'\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z 127.0.0.1:80 http "POST /v2" model=fraud version=2 id=a7 status=200 '
        r"received=84 sent=135 total_us=\d{5,} queue_us=5000 compute_us=3003 batch=4 closed=full "
        r"trace=0af7651916cd43dd8448eb211c80319c",
        line,
    )


def test_a_line_of_json_has_null_for_what_there_is_not() -> None:
    def record(log: AccessLog) -> None:
        record_key(log, ("-", "grpc", "ServerReady", "", 0, "", "OK"), monotonic_ns())

    (line,) = lines_of("json", record)

    document = json.loads(line)
    assert {key for key, value in document.items() if value is None} == {
        "model", "version", "id", "batch_size", "closed", "trace_id",
    }  # fmt: skip
    assert (document["status"], document["operation"]) == ("OK", "ServerReady")


def test_both_forms_say_the_same() -> None:
    (line,) = lines_of("json", record_one)

    document: dict[str, Any] = json.loads(line)
    assert document.pop("time").endswith("Z")
    assert document.pop("total_us") >= 10_000
    assert document == {
        "peer": "127.0.0.1:80", "protocol": "http", "operation": "POST /v2", "model": "fraud", "version": 2,
        "id": "a7", "status": 200, "received_bytes": 84, "sent_bytes": 135, "queue_us": 5000, "compute_us": 3003,
        "batch_size": 4, "closed": "full", "trace_id": "0af7651916cd43dd8448eb211c80319c",
    }  # fmt: skip


def test_what_a_client_sends_cannot_forge_a_line_or_a_field() -> None:
    hostile = 'a\nb" status=500 {} %s'

    (text,) = lines_of("text", lambda log: record_one(log, hostile, hostile, hostile))
    (line,) = lines_of("json", lambda log: record_one(log, hostile, hostile, hostile))

    assert text.count('"a\\nb\\" status=500 {} %s"') == 3
    assert json.loads(line)["id"] == json.loads(line)["model"] == hostile


@pytest.mark.parametrize("letter", ["\x1b", "\x7f", "\x85", "\x9b", "\u2028", "\u2029"])
def test_no_letter_that_ends_lines_or_commands_terminals_is_written(letter: str) -> None:
    hostile = f"ü{letter}31m"

    (text,) = lines_of("text", lambda log: record_one(log, hostile, hostile, hostile))
    (line,) = lines_of("json", lambda log: record_one(log, hostile, hostile, hostile))

    assert text.isprintable()
    assert text.count(f'"ü\\u{ord(letter):04x}31m"') == 3
    assert line.isprintable()
    assert json.loads(line)["id"] == hostile


def test_what_is_kept_of_one_line_is_not_written_into_the_next() -> None:
    phases, other = (0, 1_000, 0), (0, 2_000, 0)
    batch = (2, "full")

    def record(log: AccessLog) -> None:
        for *times, trace in (
            (phases, batch, ""), (phases, batch, ""), (phases, batch, TRACE), (phases, batch, ""), (other, batch, ""),
            (other, (3, "delay"), ""), ((0, 0, 0), (), ""),
        ):  # fmt: skip
            call = SimpleNamespace(queue_ns=0, phases=times[0], joined=times[1])
            record_key(log, (*NOTHING[:-1], trace), monotonic_ns(), call)

    lines = lines_of("text", record)

    assert [line.partition(" compute_us=")[2] for line in lines] == [
        "1 batch=2 closed=full trace=-",
        "1 batch=2 closed=full trace=-",
        "1 batch=2 closed=full trace=0af7651916cd43dd8448eb211c80319c",
        "1 batch=2 closed=full trace=-",
        "2 batch=2 closed=full trace=-",
        "2 batch=3 closed=delay trace=-",
        "0 batch=- closed=- trace=-",
    ]


def test_times_never_go_back_and_lie_between_those_before_and_after() -> None:
    before = time.time()

    def record(log: AccessLog) -> None:
        for _ in range(3000):
            record_peer(log, "p")

    stamps = [line[:24] for line in lines_of("text", record)]

    assert stamps == sorted(stamps)
    first, last = (datetime.fromisoformat(stamp).timestamp() for stamp in (stamps[0], stamps[-1]))
    assert before - 0.002 <= first <= last <= time.time()


def test_lines_come_in_the_order_in_which_requests_ended() -> None:
    def record(log: AccessLog) -> None:
        for number in range(5000):
            record_peer(log, str(number))

    lines = lines_of("text", record)

    assert [int(line.split()[1]) for line in lines] == list(range(5000))


def test_lines_are_written_while_the_log_is_open() -> None:
    written = threading.Event()
    log = AccessLog("text", lambda _: written.set()).start()

    for _ in range(2):  # the thread sleeps in between
        record_peer(log, "p")
        assert written.wait(30)
        written.clear()

    log.close(30.0)


def test_too_many_lines_are_dropped_and_counted(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("naiad_kit.access_log._MOST", 10)
    texts: list[str] = []
    log = AccessLog("text", texts.append)  # it does not write yet
    for number in range(15):
        record_peer(log, str(number))

    log.start().close(30.0)

    assert [int(line.split()[1]) for line in "".join(texts).splitlines()] == list(range(5, 15))
    assert [record.getMessage() for record in caplog.records] == [
        "5 lines of the access log were lost: requests came faster"
    ]


def test_nothing_is_logged_while_it_is_switched_off() -> None:
    def record(log: AccessLog) -> None:
        for number in range(300):
            record_peer(log, f"on{number}")
            if number % 50 == 0:
                log.switch(False)
                record_peer(log, "off")
                log.switch(True)

    assert [line.split()[1] for line in lines_of("text", record)] == [f"on{number}" for number in range(300)]


def test_every_line_of_several_threads_is_written() -> None:
    texts: list[str] = []
    log = AccessLog("text", texts.append).start()

    def record() -> None:
        for _ in range(1000):
            record_one(log)

    threads = [threading.Thread(target=record) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    log.close(30.0)

    assert "".join(texts).count("\n") == 4000


def test_addresses_are_host_and_port_or_the_path_of_a_socket() -> None:
    addresses = [("::1", 80, 0, 0), ("10.0.0.1", 80), "/run/naiad", "", None]

    assert [address_of(peer) for peer in addresses] == ["[::1]:80", "10.0.0.1:80", "/run/naiad", "-", "-"]
