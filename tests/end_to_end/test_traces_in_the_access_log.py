"""The access log has the id of the trace that the server made of a request, over both protocols."""

import json
from pathlib import Path
from typing import Any

from .collecting import collecting
from .conftest import Start
from .running import Running, until
from .test_traces_of_grpc import ask
from .test_tracing import EXPORTS

LARGE = 400_000
"""So many values are more than the connection decodes itself: an application serves them."""


def lines_of(running: Running) -> list[dict[str, Any]]:
    return [json.loads(line) for line in running.log.splitlines() if line.startswith('{"time":')]


def test_each_request_that_the_server_traces_has_the_id_of_its_trace(start: Start, repository: Path) -> None:
    with collecting() as collector:
        running = start(*EXPORTS, f"--trace-config=opentelemetry,url={collector.url}", "--access-log=json")
        for count in (1, 1, LARGE):
            assert running.infer("echo", *[1.0] * count).status == 200
        for action in ("generate", "generate_stream", "generate"):
            assert running.ask("POST", f"/v2/models/echo/{action}", {"x": [1.0]}).status == 200
        assert running.infer("nothing", 1).status == 404
        assert ask(running, "echo", "x").as_numpy("output") is not None
        until(lambda: len(lines_of(running)) >= 8)
        running.stop()

    lines = lines_of(running)
    ids = [line["trace_id"] for line in lines if line["model"] == "echo"]
    assert set(ids) == {span.trace_id.hex() for span in collector.spans if span.name == "InferRequest"} - {
        line["trace_id"] for line in lines if line["model"] == "nothing"
    }
    assert len(set(ids)) == len(ids) == 7
