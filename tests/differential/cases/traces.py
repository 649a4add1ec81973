"""The files that traces are written to: which events and tensors, in which form and order."""

import json
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..answers import Answer, Case, Ports
from ..http_asking import PATIENCE
from . import grpc_making
from .http_making import adds, infer, requested, tensor

OPTIONS = (
    "--trace-config=triton,file={folder}/trace",
    "--trace-config=triton,log-frequency=1",
    "--trace-config=rate=1",
    "--trace-config=level=TIMESTAMPS",
    "--trace-config=level=TENSORS",
)
_DETERMINED = 7
"""So many events come in one order always; the ends of computing and of sending overtake each other."""


def cases() -> list[Case]:
    """Every case of this page."""
    texts = tensor("IN", "BYTES", [2, 1], ["one", 'a "b"'])
    requests = [
        adds("traces/http"),
        adds("traces/http_id", id="the id"),
        adds("traces/http_one_output", outputs=requested("OUTPUT1")),
        infer("traces/texts", "words", [texts]),
        infer("traces/integers", "versions", [tensor("IN", "INT32", [1], [5])]),
        infer("traces/booleans", "mirror", [tensor("IN_BOOL", "BOOL", [2], [True, False])]),
        infer("traces/failing", "failing", [tensor("IN", "INT32", [1], [1])]),
        grpc_making.adds("traces/grpc"),
        grpc_making.adds("traces/grpc_id", id="the id"),
    ]
    return [_traced(case) for case in requests]


def _traced(case: Case) -> Case:
    """The case, and what is written of it to the newest file."""

    def ask(ports: Ports) -> Answer:
        before = _newest(ports.folder)
        answer = case.ask(ports)
        return Answer(answer.status, {}, _summary(_written_after(ports.folder, before)))

    return replace(case, ask=ask)


def _newest(folder: Path) -> int:
    return max((int(path.suffix[1:]) for path in folder.glob("trace.*")), default=-1)


def _written_after(folder: Path, before: int) -> list[dict[str, Any]]:
    """The objects in the first file after that one, as soon as there is one that is whole."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        with suppress(FileNotFoundError, ValueError):
            if written := json.loads((folder / f"trace.{before + 1}").read_text()):
                return list(written)
        time.sleep(0.01)
    return [{"nothing": "was written"}]


def _summary(written: list[dict[str, Any]]) -> dict[str, Any]:
    """What runs alike each time: identities, the order of events, and the tensors."""
    events = [event for each in written for event in each.get("timestamps", ())]
    order = [event["name"] for event in sorted(events, key=lambda event: event["ns"])]
    keys = sorted({" ".join(sorted(each)) for each in written})
    identities = [{k: v for k, v in each.items() if k != "id"} for each in written if "model_name" in each]
    tensors = [{k: v for k, v in each.items() if k != "id"} for each in written if "tensor" in each]
    return {
        "keys": keys,
        "identities": identities,
        "events": sorted(order),
        "first events": order[:_DETERMINED],
        "activities": sorted(tensors, key=json.dumps),
    }
