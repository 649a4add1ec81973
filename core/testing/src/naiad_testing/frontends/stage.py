"""Server of the frontend suite: in-process, with models that do what their requests say."""

import json
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import TimeoutError as StillWaitingError
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from naiad import errors
from naiad.backend import Answer, Batch, Reply
from naiad.types import Request
from naiad_tensors.datatypes import TENSOR_TYPES
from naiad_testing.clients import Client
from naiad_testing.fake_backend import FakeBackend
from naiad_testing.frontends.adapter import FrontendAdapter
from naiad_testing.serving import serve

PATIENCE = 30.0
"""Seconds after which something that should happen counts as never happening."""
_STUCK_SECONDS = 0.3


class SuiteBackend(FakeBackend):
    """The backend of the suite's models.

    `add_sub`: SUM and DIFFERENCE of A and B, FP32[4], in batches of up to 8; SUM has labels. `mirror`: IN_<datatype> as
    OUT_<datatype>, all of them optional. `sayer`: what the request of X says, as JSON in SAID, and X. `repeat` is
    decoupled: INDEX counts to COUNT, with a TEXT of SIZE letters.

    Parameters of a request: `error` names the error that the model answers with, `crash` is raised, and with `patient`
    the model waits until the request is cancelled, having set `waits`; it sets `cancelled` then. `sent` counts the
    responses of `repeat`, and `stuck` is set when it has waited for its reader for a while.
    """

    def __init__(self) -> None:
        super().__init__("suite", self._run)
        self.batches = deque(maxlen=64)  # type: ignore[assignment]
        self.waits, self.cancelled, self.stuck = threading.Event(), threading.Event(), threading.Event()
        self.sent = 0

    def write_models(self, repository: Path) -> None:
        """Write the suite's models."""
        both = "".join(
            f"{side} [ {_tensors(names, '[4]')} ]\n"
            for side, names in (("input", {"A": "FP32", "B": "FP32"}), ("output", {"DIFFERENCE": "FP32"}))
        )
        labelled = 'output { name: "SUM" data_type: TYPE_FP32 dims: [4] label_filename: "labels.txt" }\n'
        folder = self.write(repository, "add_sub", "max_batch_size: 8\n" + both + labelled)
        (folder / "labels.txt").write_text("zero\none\ntwo\n", encoding="utf-8")
        kinds = {kind: "STRING" if kind == "BYTES" else kind for kind in TENSOR_TYPES}
        inputs = _tensors({f"IN_{wire}": kind for wire, kind in kinds.items()}, "[-1, -1]", " optional: true")
        outputs = _tensors({f"OUT_{wire}": kind for wire, kind in kinds.items()}, "[-1, -1]")
        self.write(repository, "mirror", f"input [ {inputs} ]\noutput [ {outputs} ]\n")
        said = (
            f"input [ {_tensors({'X': 'FP32'}, '[1]')} ]\noutput [ {_tensors({'SAID': 'STRING', 'X': 'FP32'}, '[1]')} ]"
        )
        self.write(repository, "sayer", said)
        counted = (
            f"input [ {_tensors({'COUNT': 'INT32'}, '[1]')}, {_tensors({'SIZE': 'INT32'}, '[1]', ' optional: true')} ]"
        )
        texts = f"output [ {_tensors({'INDEX': 'INT32', 'TEXT': 'STRING'}, '[1]')} ]"
        self.write(repository, "repeat", f"model_transaction_policy {{ decoupled: true }}\n{counted}\n{texts}")

    def _run(self, batch: Batch) -> Answer:
        if batch.requests[0].model_name == "repeat":
            for index, request in enumerate(batch.requests):
                self._send_all(request, batch.sender(index))
            return [None] * len(batch.requests)
        return [self._reply(request) for request in batch.requests]

    def _reply(self, request: Request) -> Any:
        parameters = dict(request.parameters)
        if "crash" in parameters:
            raise RuntimeError(parameters["crash"])
        if "error" in parameters:
            return make_error(str(parameters["error"]))
        if "patient" in parameters:
            self._wait_until_cancelled(request)
        arrays = {name: tensor.array for name, tensor in request.inputs.items()}
        if request.model_name == "add_sub":
            outputs = {"SUM": arrays["A"] + arrays["B"], "DIFFERENCE": arrays["A"] - arrays["B"]}
        elif request.model_name == "sayer":
            outputs = {"SAID": np.array([json.dumps(_said(request)).encode()], object), **arrays}
        else:
            outputs = {name.replace("IN", "OUT", 1): array for name, array in arrays.items()}
        return Reply(outputs, parameters)

    def _wait_until_cancelled(self, request: Request) -> None:
        came = threading.Event()
        request.on_cancelled = came.set
        self.waits.set()
        if request.cancelled or came.wait(PATIENCE):
            self.cancelled.set()

    def _send_all(self, request: Request, sender: Any) -> None:
        size = int(request.inputs["SIZE"].array[0]) if "SIZE" in request.inputs else 1
        for index in range(int(request.inputs["COUNT"].array[0])):
            outputs = {"INDEX": np.array([index], np.int32), "TEXT": np.array([b"x" * size], object)}
            full = sender.post(Reply(outputs))
            self.sent += 1
            if full is not None:
                self._wait_for_reader(full)
            if sender.is_cancelled():
                self.cancelled.set()
                break
        failed = "error" in request.parameters
        sender.send(make_error(str(request.parameters["error"])) if failed else None, final=True)

    def _wait_for_reader(self, full: Any) -> None:
        try:
            full.result(_STUCK_SECONDS)
        except StillWaitingError:
            self.stuck.set()
            full.result(PATIENCE)


def make_error(name: str) -> errors.NaiadError:
    """An error of that name, which says `it is wrong`."""
    kind = getattr(errors, name)
    error: errors.NaiadError = kind([errors.Problem("it is wrong")] if kind is errors.ConfigError else "it is wrong")
    return error


@dataclass(frozen=True)
class Served:
    """A running server: the adapter over the frontend's wire, the client in the process, and the models' backend."""

    adapter: FrontendAdapter
    client: Client
    backend: SuiteBackend
    repository: Path
    frontend: Any
    stop: Callable[[], None]
    """Stop the server now."""


class Stage:
    """What a behaviour is checked on: a server that all behaviours share, and others with options of their own.

    `connect` makes an adapter from the frontend's address and credentials; `plugins` are the frontend's own, and those
    with shared memory and tracing; `options` are those of every server. Use it as a context.
    """

    def __init__(
        self,
        connect: Callable[..., FrontendAdapter],
        kind: type[FrontendAdapter],
        plugins: Sequence[object],
        folder: Path,
        options: Mapping[str, Any] = MappingProxyType({}),
    ) -> None:
        self.kind = kind
        self._options = options
        self.folder = folder
        self.connect = connect
        self._plugins = plugins
        self._stack = ExitStack()
        self._shared: Served | None = None
        self._count = 0

    def __enter__(self) -> "Stage":
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.close()

    @property
    def shared(self) -> Served:
        """The server of all behaviours, which each leaves as it was."""
        if self._shared is None:
            options = {"allow-client-shm": True, f"{self.kind.frontend}-header-forward-pattern": "^x-"}
            self._shared = self._stack.enter_context(self.serving(options))
        return self._shared

    def option(self, name: str) -> str:
        """An option of the frontend: `port` is `http-port`, say."""
        return f"{self.kind.frontend}-{name}"

    def without(self, service: str) -> list[object]:
        """The plugins but for the one whose module's name ends so."""
        return [each for each in self._plugins if not getattr(each, "__name__", "").endswith(service)]

    @contextmanager
    def serving(
        self, options: Mapping[str, Any] | None = None, plugins: Sequence[object] | None = None, credentials: Any = None
    ) -> Iterator[Served]:
        """A server of its own with these options, until the block ends."""
        self._count += 1
        repository = self.folder / f"models-{self._count}"
        backend = SuiteBackend()
        backend.write_models(repository)
        listening = {self.option("port"): 0, self.option("address"): "127.0.0.1"}
        chosen = {**listening, **self._options, **(options or {})}
        used = [backend, *(self._plugins if plugins is None else plugins)]
        with ExitStack() as stack:
            stack.callback(backend.release)
            server = stack.enter_context(ExitStack())
            client = server.enter_context(serve(repository, plugins=used, options=chosen))
            running: Any = client.server
            frontend = running.plugins.frontends()[self.kind.frontend]
            adapter = self.connect(self.kind.address_of(frontend), credentials)
            stack.callback(adapter.close)
            yield Served(adapter, client, backend, repository, frontend, server.close)


def _said(request: Request) -> dict[str, Any]:
    return {
        "id": request.id,
        "parameters": dict(request.parameters),
        "priority": request.priority,
        "timeout": request.timeout_microseconds,
        "requested": list(request.requested),
        "sequence": [request.correlation_id, request.sequence_start, request.sequence_end],
        "has_deadline": request.deadline is not None,
    }


def _tensors(kinds: dict[str, str], dims: str, more: str = "") -> str:
    return ", ".join(f'{{ name: "{name}" data_type: TYPE_{kind} dims: {dims}{more} }}' for name, kind in kinds.items())
