"""Loads that fail or are refused: what they brought along must be gone afterwards."""

import base64
import contextlib
import json
from collections import Counter
from collections.abc import Sequence

from bench.torture.case import Bounds, Case, Figure
from bench.torture.server import Setup, Target
from bench.torture.wire import ask

_EXPLICIT = ("--model-control-mode=explicit", "--load-model=add_sub", "--allow-uploaded-code=true")
_IO = {
    "input": [{"name": "x", "data_type": "TYPE_FP32", "dims": [1]}],
    "output": [{"name": "y", "data_type": "TYPE_FP32", "dims": [1]}],
}
_BROKEN = b"raise ValueError('this model cannot be imported')\n"
_LARGE = b"""
from naiad_custom import FP32, Array, model

LARGE = bytearray(5_000_000)


@model(outputs="y")
def large(x: Array[FP32, 1]) -> Array[FP32, 1]:
    return x + 1
"""


def failed_loads(target: Target) -> Sequence[Figure]:
    """30 names, each loaded once with a file of 20 MB and a model that cannot be imported."""
    files = {"file:1/large.bin": bytes(20_000_000), "file:1/model.py": _BROKEN}
    return _refused(target, 30, {"backend": "python", **_IO}, files, "this model cannot be imported")


def refused_overrides(target: Target) -> Sequence[Figure]:
    """40 loads of a model of 5 MB that are refused after its file was read: its configuration has another output."""
    config = {"backend": "python", "output": [{"name": "z", "data_type": "TYPE_FP32", "dims": [1]}]}
    return _refused(target, 40, config, {"file:1/model.py": _LARGE}, "'z'")


def _refused(
    target: Target, count: int, config: dict[str, object], files: dict[str, bytes], reason: str
) -> list[Figure]:
    """Load so many names with this configuration and these files; each load must fail for that reason."""
    parameters = {name: base64.b64encode(content).decode() for name, content in files.items()}
    body = json.dumps({"parameters": {"config": json.dumps(config), **parameters}}).encode()
    statuses: Counter[int] = Counter()
    message, others = "", 0
    for number in range(count):
        answer = ask(target.ports.http, "POST", f"/v2/repository/models/name_{number}/load", body)
        statuses[answer.status] += 1
        message = answer.body.decode()
        others += reason not in message
        if answer.status == 200:
            with contextlib.suppress(OSError, EOFError):
                ask(target.ports.http, "POST", f"/v2/repository/models/name_{number}/unload", b"{}")
    return [
        Figure("loads that went well", statuses[200], 0, message[:150]),
        Figure("other reasons", others, 0, message[:150]),
        Figure("statuses", len(statuses), 1),
    ]


CASES = (
    Case("load-30-failures-of-20MB", failed_loads, Bounds(kept=80, peak=300, log=300), Setup(options=_EXPLICIT)),
    Case("load-40-refusals", refused_overrides, Bounds(kept=60, peak=150, log=300), Setup(options=_EXPLICIT)),
)
