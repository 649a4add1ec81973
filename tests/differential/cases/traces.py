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
from .http_making import A, B, adds, infer, requested, tensor

OPTIONS = (
    "--trace-config=triton,file={folder}/trace",
    "--trace-config=triton,log-frequency=1",
    "--trace-config=rate=1",
    "--trace-config=level=TIMESTAMPS",
    "--trace-config=level=TENSORS",
)
_UNCHANGED_SECONDS = 0.2
"""A file that does not grow for so long is complete: the traces of steps may come after that of their ensemble."""

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
        infer("traces/ensemble", "chain", [A | {"name": "A"}, B | {"name": "B"}]),
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
    """The objects in the first file after that one, as soon as there is one that is whole and does not grow."""
    path, written = folder / f"trace.{before + 1}", ""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        with suppress(FileNotFoundError, ValueError):
            earlier, written = written, path.read_text()
            if (objects := json.loads(written)) and written == earlier:
                return list(objects)
        time.sleep(_UNCHANGED_SECONDS)
    return [{"nothing": "was written"}]


def _summary(written: list[dict[str, Any]]) -> dict[str, Any]:
    """What runs alike each time: identities, the order of events, and the tensors."""
    events = [event for each in written for event in each.get("timestamps", ())]
    order = [event["name"] for event in sorted(events, key=lambda event: event["ns"])]
    keys = sorted({" ".join(sorted(each)) for each in written})
    names = {each["id"]: each["model_name"] for each in written if "model_name" in each}
    identities = [_identity(each, names) for each in written if "model_name" in each]
    tensors = [{k: v for k, v in each.items() if k != "id"} for each in written if "tensor" in each]
    return {
        "keys": keys,
        "identities": sorted(identities, key=json.dumps),
        "events": sorted(order),
        "first events": order[:_DETERMINED],
        "activities": sorted(tensors, key=json.dumps),
    }


def _identity(about: dict[str, Any], names: dict[int, str]) -> dict[str, Any]:
    """What a trace is about, with the model of its parent, whose number differs from run to run."""
    return {
        key: names.get(value, "in another file") if key == "parent_id" else value
        for key, value in about.items()
        if key != "id"
    }
