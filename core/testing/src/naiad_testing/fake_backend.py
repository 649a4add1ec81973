"""Fake backend without a framework: tests control what it does, and read what it was called with."""

import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from naiad.backend import Answer, Backend, BackendTraits, Batch, ModelContext, Placement
from naiad.hookspecs import hookimpl
from naiad_config import DataType, ModelConfig, ModelInput, ModelOutput


def echo(batch: Batch) -> Answer:
    """OUTPUT is INPUT."""
    return {"OUTPUT": batch.input("INPUT")}


class FakeBackend:
    """Serves models with INPUT and OUTPUT, FP32[-1] where the configuration leaves them open; it is its own plugin.

    `answer` is what an instance does with a batch. `events` lists what was called, in order, as words; `batches` holds
    every batch executed. Put an error into `load_error` or `instance_error` to make the next loads fail; `hold()` makes
    executions wait until `release()`, `wait_until_held()` returns when one does. Any thread may use all of it.
    """

    def __init__(self, name: str = "fake", answer: Callable[[Batch], Answer] = echo) -> None:
        self.traits = BackendTraits(name=name)
        self.answer = answer
        self.events: list[str] = []
        self.batches: list[Batch] = []
        self.load_error: Exception | None = None
        self.instance_error: Exception | None = None
        self.not_ready = ""
        self._open = threading.Event()
        self._open.set()
        self._held = threading.Semaphore(0)

    @hookimpl
    def naiad_backends(self) -> Sequence[Backend]:
        """The backend itself: pass it to `Server(plugins=[...])` as it is."""
        return [self]

    def write(self, repository: Path, name: str, config: str = "", versions: Sequence[int] = (1,)) -> Path:
        """Write the folder of a model that this backend serves; `config` is added to its config.pbtxt."""
        for version in versions:
            (repository / name / str(version)).mkdir(parents=True, exist_ok=True)
        text = f'backend: "{self.traits.name}"\n{config}\n'
        (repository / name / "config.pbtxt").write_text(text, encoding="utf-8")
        return repository / name

    def hold(self) -> None:
        """Make executions wait; those that were held before count no more for `wait_until_held()`."""
        while self._held.acquire(blocking=False):
            pass
        self._open.clear()

    def release(self) -> None:
        """Let the executions go on."""
        self._open.set()

    def wait_until_held(self, timeout: float = 10.0) -> None:
        """Return when one more execution waits. Raises TimeoutError after `timeout` seconds."""
        if not self._held.acquire(timeout=timeout):
            raise TimeoutError(f"no execution waits after {timeout:g} seconds")

    def complete(self, context: ModelContext) -> ModelConfig:
        """The configuration, with INPUT and OUTPUT where it has none."""
        self.events.append(f"complete {context.config.name}")
        config = context.config
        if not config.input:
            config = replace(config, input=(ModelInput(name="INPUT", data_type=DataType.TYPE_FP32, dims=(-1,)),))
        if not config.output:
            config = replace(config, output=(ModelOutput(name="OUTPUT", data_type=DataType.TYPE_FP32, dims=(-1,)),))
        return config

    def load(self, context: ModelContext) -> "FakeModel":
        """A model, or `load_error`."""
        self.events.append(f"load {context.config.name} {context.version}")
        if self.load_error is not None:
            raise self.load_error
        return FakeModel(self, f"{context.config.name} {context.version}")

    def run(self, batch: Batch) -> Answer:
        """What instances do: wait while held, note the batch, answer."""
        if not self._open.is_set():
            self._held.release()
        self._open.wait()
        self.batches.append(batch)
        return self.answer(batch)


class FakeModel:
    """A version loaded by FakeBackend."""

    def __init__(self, backend: FakeBackend, name: str) -> None:
        self.backend = backend
        self._name = name

    def instantiate(self, placement: Placement) -> "FakeInstance":
        """An instance, or `instance_error`."""
        self.backend.events.append(f"instantiate {placement.name}")
        if self.backend.instance_error is not None:
            raise self.backend.instance_error
        return FakeInstance(self.backend, placement.name)

    def close(self) -> None:
        """Note it."""
        self.backend.events.append(f"close {self._name}")


class FakeInstance:
    """An instance of FakeModel."""

    def __init__(self, backend: FakeBackend, name: str) -> None:
        self.backend = backend
        self._name = name

    def execute(self, batch: Batch) -> Answer:
        """What the backend's `answer` says."""
        return self.backend.run(batch)

    def ready(self) -> str:
        """What the backend's `not_ready` says."""
        return self.backend.not_ready

    def close(self) -> None:
        """Note it."""
        self.backend.events.append(f"close {self._name}")
