"""The access log: forms of its lines, and that no line is lost or forged."""

import json
import threading
from time import monotonic_ns

from naiad_kit.access_log import Access, AccessLog, address_of


def lines_of(form: str, *entries: Access) -> list[str]:
    """The lines that the log writes for these entries until it is closed."""
    texts: list[str] = []
    log = AccessLog(form, texts.append).start()
    for entry in entries:
        log.record(entry)
    log.close()
    return "".join(texts).splitlines()


def access(request_id: str = "a7", status: int | str = 200, subject: str = "s") -> Access:
    return (
        monotonic_ns(), subject, 2, request_id, status, 84, 135,
        9_999_999, 5_000_000, (1_000, 3_000_000, 2_000), (4, "full"), "00-0af7651916cd43dd8448eb211c80319c-b7-01",
    )  # fmt: skip


def test_a_line_of_text_has_times_in_microseconds_and_the_trace_id() -> None:
    subject = AccessLog("text").subject("127.0.0.1:80", "http", "POST /v2", "fraud")

    (line,) = lines_of("text", access(subject=subject))

    assert line[26:] == (
        'Z 127.0.0.1:80 http "POST /v2" model=fraud version=2 id=a7 status=200 received=84 sent=135 total_us=9999 '
        "queue_us=5000 compute_us=3003 batch=4 closed=full trace=0af7651916cd43dd8448eb211c80319c"
    )


def test_a_line_of_json_has_null_for_what_there_is_not() -> None:
    subject = AccessLog("json").subject("-", "grpc", "ServerReady")
    bare: Access = (monotonic_ns(), subject, 0, "", "OK", 0, 0, 0, 0, (0, 0, 0), (), "")

    (line,) = lines_of("json", bare)

    document = json.loads(line)
    assert {key for key, value in document.items() if value is None} == {
        "model", "version", "id", "batch_size", "closed", "trace_id",
    }  # fmt: skip
    assert (document["status"], document["operation"]) == ("OK", "ServerReady")


def test_what_a_client_sends_cannot_forge_a_line_or_a_field() -> None:
    hostile = 'a\nb" status=500'

    (text,) = lines_of("text", access(hostile, subject=AccessLog("text").subject("p", "http", hostile, hostile)))
    (line,) = lines_of("json", access(hostile, subject=AccessLog("json").subject("p", "http", hostile, hostile)))

    assert text.count('"a\\nb\\" status=500"') == 3
    assert json.loads(line)["id"] == json.loads(line)["model"] == hostile


def test_every_line_of_several_threads_is_written() -> None:
    texts: list[str] = []
    log = AccessLog("text", texts.append).start()

    def record() -> None:
        for _ in range(1000):
            log.record(access())

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
