"""A decoupled model that counts aloud: COUNT responses of SIZE letters each, one after the other."""

import threading
from concurrent.futures import TimeoutError as StillFull
from types import SimpleNamespace

import numpy as np

import naiad
from naiad.backend import BackendTraits, Reply
from naiad.errors import InvalidArgumentError

_STUCK_SECONDS = 0.3

CONFIG = """
backend: "teller"
model_transaction_policy { decoupled: true }
input [{ name: "COUNT" data_type: TYPE_INT32 dims: [1] },
       { name: "SIZE" data_type: TYPE_INT32 dims: [1] optional: true }]
output [{ name: "NUMBER" data_type: TYPE_INT32 dims: [1] }, { name: "TEXT" data_type: TYPE_STRING dims: [1] }]
"""


class Teller:
    """What a test sees of the model, and how it holds it.

    `sent` counts responses; `stuck`: the model has waited for its reader for a while; `cancelled`: it has seen its
    caller leave. A request with the parameter `wait` waits for `opened` after its first response, and one with `fail`
    ends with an error instead of the final mark.
    """

    def __init__(self):
        self.sent = self.executed = 0
        self.stuck, self.cancelled, self.waits, self.opened = (threading.Event() for _ in range(4))

    def execute(self, batch):
        self.executed += 1
        for index, request in enumerate(batch.requests):
            self._send_all(request, batch.sender(index))
        return [None] * len(batch.requests)

    def close(self):
        pass

    def _send_all(self, request, sender):
        size = int(request.inputs["SIZE"].array[0]) if "SIZE" in request.inputs else 1
        for number in range(int(request.inputs["COUNT"].array[0])):
            outputs = {"NUMBER": np.array([number], np.int32), "TEXT": np.array([b"x" * size], object)}
            self._wait(sender.post(Reply(outputs)))
            self.sent += 1
            if number == 0 and "wait" in request.parameters:
                self.waits.set()
                assert self.opened.wait(30)
            if sender.is_cancelled():
                self.cancelled.set()
                break
        sender.send(InvalidArgumentError("sent too much") if "fail" in request.parameters else None, final=True)

    def _wait(self, room):
        if room is None:
            return
        try:
            room.result(_STUCK_SECONDS)
        except StillFull:
            self.stuck.set()
            room.result(30)


class TellerPlugin:
    """The plugin and backend of the model; `teller` is its one instance."""

    traits = BackendTraits(name="teller", files={"teller": ""})

    def __init__(self):
        self.teller = Teller()

    @naiad.hookimpl
    def naiad_backends(self):
        return [self]

    def complete(self, context):
        return context.config

    def load(self, _context):
        return SimpleNamespace(instantiate=lambda placement: self.teller, close=lambda: None)


def write_teller(root):
    """A repository with the model `teller`."""
    (root / "teller" / "1").mkdir(parents=True)
    (root / "teller" / "1" / "teller").touch()
    (root / "teller" / "config.pbtxt").write_text(CONFIG)
    return root
