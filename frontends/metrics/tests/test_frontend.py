"""The frontend on a running server: what it answers, where it listens, and how it ends."""

import asyncio
import gzip
import socket

import numpy as np
import pytest
from prometheus_client.parser import text_string_to_metric_families as parse

import naiad_metrics
from naiad import Server
from naiad.errors import InvalidArgumentError, UnavailableError
from naiad_kit.metrics import MetricsApi
from naiad_metrics.options import OPTIONS, address_of
from naiad_testing.backends import FakeBackend


def values(body):
    """Every sample of a body by its name and labels; the parser calls each counter so and so `_total`."""
    return {
        (sample.name.removesuffix("_total"), frozenset(sample.labels.items())): sample.value
        for family in parse(body.decode())
        for sample in family.samples
    }


def test_metrics_are_served_as_prometheus_text(server):
    server.client.infer(INPUT=np.ones(2, np.float32))

    status, headers, body = server.ask()

    assert (status, headers["content-type"]) == (200, "text/plain; charset=utf-8")
    assert int(headers["content-length"]) == len(body)
    one = frozenset({("model", "m"), ("version", "1")})
    result = values(body)
    assert result["nv_inference_request_success", one] == 1
    assert result["naiad_request_duration_seconds_count", one] == 1
    assert result["nv_inference_request_failure", one | {("reason", "REJECTED")}] == 0
    assert 0 <= result["nv_cpu_utilization", frozenset()] <= 1


def test_everything_that_is_collected_is_served(server):
    families = server.client.wait_for(collected)

    read = {family.name: family for family in parse(server.ask()[2].decode())}

    assert {name.removesuffix("_total") for name in read} == {name.removesuffix("_total") for name in families}
    for name, (help_text, kind) in families.items():
        family = read.get(name) or read[name.removesuffix("_total")]
        assert (family.documentation, family.type) == (help_text, kind)


async def collected(server):
    return {family.name: (family.help, family.kind) for family in server.service(MetricsApi).collect()}


@pytest.mark.parametrize("accepted", ["gzip", "deflate, gzip;q=0.5", "GZIP", "*", "br;q=1.0, x-gzip"])
def test_text_is_compressed_for_clients_that_take_that(server, accepted):
    _, headers, body = server.ask(Accept_Encoding=accepted)

    assert (headers["content-encoding"], headers["vary"]) == ("gzip", "Accept-Encoding")
    assert b"nv_inference_count" in gzip.decompress(body)


@pytest.mark.parametrize("accepted", ["identity", "gzip;q=0", "gzip; q=0.000", "deflate", ""])
def test_text_is_plain_for_clients_that_do_not_take_gzip(server, accepted):
    _, headers, body = server.ask(Accept_Encoding=accepted)

    assert "content-encoding" not in headers
    assert b"nv_inference_count" in body


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS"])
def test_other_methods_are_refused(server, method):
    status, headers, _ = server.ask(method)

    assert (status, "GET" in headers["allow"]) == (405, True)


@pytest.mark.parametrize("path", ["/", "/metrics/", "/v2/health/live", "/metrics/x"])
def test_other_paths_are_not_there(server, path):
    status, _, body = server.ask(path=path)

    assert (status, body.decode()) == (404, f"there is nothing at '{path}'; metrics are at /metrics\n")


def test_a_connection_serves_many_scrapes(server):
    with socket.create_connection(server.address, timeout=20) as opened, opened.makefile("rb") as answers:
        for _ in range(2):
            opened.sendall(b"GET /metrics HTTP/1.1\r\nHost: h\r\n\r\n")
            assert answers.readline() == b"HTTP/1.1 200 OK\r\n"
            head = dict(line.split(b": ", 1) for line in iter(answers.readline, b"\r\n"))
            answers.read(int(head[b"content-length"]))


def test_without_metrics_no_port_is_open(start_server):
    assert start_server(**{"allow-metrics": False}).frontend.port == 0


def settings(**values):
    defaults = {option.name: option.default for option in OPTIONS}
    return {**defaults, **{name.replace("_", "-"): value for name, value in values.items()}}


@pytest.mark.parametrize(
    ("value", "address"),
    [
        ({}, "0.0.0.0"),
        ({"http_address": "10.0.0.1", "allow_http": True}, "10.0.0.1"),
        ({"http_address": "10.0.0.1", "allow_http": False}, "0.0.0.0"),
        ({"http_address": "unix:/run/naiad", "allow_http": True}, "0.0.0.0"),
        ({"http_address": "10.0.0.1", "allow_http": True, "metrics_address": "127.0.0.1"}, "127.0.0.1"),
    ],
)
def test_metrics_are_served_where_http_is_unless_another_address_is_given(value, address):
    assert address_of(settings(**value)) == address


def new_server(models, **options):
    return Server(model_repository=[models], plugins=[FakeBackend(), naiad_metrics], options=options)


def test_it_says_where_it_listens(models):
    async def main(address):
        async with new_server(models, **{"metrics-port": 0, "metrics-address": address}) as server:
            frontend = server.plugins.frontends()["metrics"]
            _, writer = await asyncio.open_connection(frontend.address, frontend.port)
            writer.close()
            return frontend.address

    assert asyncio.run(main("127.0.0.1")) == "127.0.0.1"
    assert asyncio.run(main("localhost")) in ("127.0.0.1", "::1")


def test_a_port_that_is_taken_is_reported_with_the_option_that_changes_it(models, server):
    options = {"metrics-address": "127.0.0.1", "metrics-port": server.frontend.port}

    with pytest.raises(UnavailableError, match="metrics cannot be served on 127") as caught:
        asyncio.run(new_server(models, **options).start())

    assert "--metrics-port" in str(caught.value)


def test_an_address_that_is_none_is_reported_with_its_option(models):
    with pytest.raises(InvalidArgumentError, match=r"--metrics-address: 'nowhere\.invalid'"):
        asyncio.run(new_server(models, **{"metrics-address": "nowhere.invalid", "metrics-port": 0}).start())


@pytest.mark.parametrize("text", ["70000", "-1", "x"])
def test_a_port_that_is_none_is_refused(text):
    (port,) = (option for option in OPTIONS if option.name == "metrics-port")

    with pytest.raises(ValueError, match=text):
        port.type(text)


def test_idle_connections_do_not_hold_up_the_end(models):
    async def main():
        server = new_server(models, **{"metrics-address": "127.0.0.1", "metrics-port": 0})
        await server.start()
        port = server.plugins.frontends()["metrics"].port
        silent = await asyncio.open_connection("127.0.0.1", port)
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET /metrics HTTP/1.1\r\nHost: h\r\n\r\n")
        await reader.readuntil(b"\r\n\r\n")
        await server.stop()
        rest = await silent[0].read()
        for each in (writer, silent[1]):
            each.close()
        return rest

    assert asyncio.run(asyncio.wait_for(main(), 10)) == b""


def test_a_scrape_in_flight_is_answered_before_the_end(models):
    async def main():
        server = new_server(models, **{"metrics-address": "127.0.0.1", "metrics-port": 0})
        await server.start()
        response, go_on = asyncio.Event(), asyncio.Event()

        async def scrape():
            response.set()
            await go_on.wait()
            return metrics.collect()

        metrics = server.service(MetricsApi)
        metrics.scrape = scrape
        reader, writer = await asyncio.open_connection("127.0.0.1", server.plugins.frontends()["metrics"].port)
        writer.write(b"GET /metrics HTTP/1.1\r\nHost: h\r\n\r\n")
        await response.wait()
        stopping = asyncio.ensure_future(server.stop())
        await asyncio.sleep(0)
        go_on.set()
        answer = await reader.read()
        await stopping
        writer.close()
        return answer

    answer = asyncio.run(asyncio.wait_for(main(), 10))

    assert answer.startswith(b"HTTP/1.1 200 OK\r\n")
    assert b"# TYPE nv_inference_count counter" in answer
