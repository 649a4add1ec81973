"""Conformance checks of a backend, published for every backend."""

import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from naiad.backend import Answer, Backend, Batch, Instance, MemoryUsage, Model, ModelContext, Placement
from naiad.errors import NaiadError
from naiad_config import ModelConfig, ModelInstanceGroup
from naiad_config.normalisation import normalise
from naiad_config.text import parse_text
from naiad_config.validation import problems
from naiad_testing.executing import PATIENCE, batches, compare, outputs_of
from naiad_testing.fake_backend import FakeBackend
from naiad_testing.senders import CollectingSender
from naiad_testing.simulation import ContractBroken

__all__ = [
    "BackendCase",
    "CollectingSender",
    "ContractBroken",
    "FakeBackend",
    "check_backend",
    "check_imports_no_framework",
]


@dataclass(frozen=True)
class BackendCase:
    """A model to hold a backend against: its folder, and requests with the answers that are expected.

    `requests` are inputs by name, with their batch dimension where the model has one; `expected` are the outputs for
    each, compared within `tolerance` (relative, and absolute around 0); where a model streams, each is a sequence of
    its responses. `settings` are `--backend-config` values. The instances are on GPU 0 where the machine has `gpus`.
    """

    model_directory: Path
    requests: Sequence[Mapping[str, Any]]
    expected: Sequence[Mapping[str, Any] | Sequence[Mapping[str, Any]]]
    version: int = 1
    tolerance: float = 1e-5
    settings: Mapping[str, str] | None = None
    gpus: int = 0


def check_backend(backend: Backend, case: BackendCase) -> None:
    """Hold a backend against its contract with one model. Raises ContractBroken (an AssertionError) saying where.

    The configuration is completed, to the same twice, and valid; the model loads; every request gets its answer alone,
    in one batch with the others (where the model takes batches) and on two instances at once; inputs are not written
    to; `ready` and `memory_usage`, where they are there, answer in their types; everything closes; and a model file
    that is missing or holds garbage is a NaiadError, not something else.
    """
    config = _checked_config(backend, case)
    with _loaded(backend, _context(case, config)) as model:
        first, second = (_instance(model, name, case) for name in ("check_0", "check_1"))
        _check_answers(first, case, config)
        _check_two_at_once((first, second), case, config)
        _check_reports(model, first)
        second.close()
        first.close()
    _check_broken_files(backend, case)


def check_imports_no_framework(module: str, *frameworks: str) -> None:
    """Import a plugin's module and ask for its backends, in a fresh interpreter; that may import no framework.

    The interpreter has the import path of this one. Raises ContractBroken naming the frameworks that were imported.
    """
    code = (
        f"import importlib, json, sys; plugin = importlib.import_module({module!r}); "
        "hook = getattr(plugin, 'naiad_backends', None); hook and hook(); "
        f"print(json.dumps([each for each in {list(frameworks)!r} if each in sys.modules]))"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, env=environment
    )
    if done.returncode:
        raise ContractBroken(f"importing '{module}' failed:\n{done.stderr}")
    imported = json.loads(done.stdout)
    if imported:
        raise ContractBroken(f"importing '{module}' imports {', '.join(imported)}; import it where you load a model")


def _checked_config(backend: Backend, case: BackendCase) -> ModelConfig:
    if not isinstance(backend, Backend) or not backend.traits.name:
        raise ContractBroken(f"{backend!r} is no backend: it needs traits with a name, complete and load")
    written = _written(backend, case)
    completed = backend.complete(_context(case, written))
    if backend.complete(_context(case, completed)) != completed:
        raise ContractBroken("completing a configuration that is complete changes it; keep what is there")
    config = normalise(completed, traits=backend.traits, gpus=case.gpus)
    invalid = problems(config)
    if invalid:
        raise ContractBroken("the completed configuration is not valid:\n" + "\n".join(map(str, invalid)))
    if not config.input or not config.output:
        raise ContractBroken("the completed configuration has no inputs or no outputs")
    return config


def _written(backend: Backend, case: BackendCase) -> ModelConfig:
    path = case.model_directory / "config.pbtxt"
    config = parse_text(path.read_text(encoding="utf-8"), file=str(path)) if path.is_file() else ModelConfig()
    files = backend.traits.files
    of_platform = [file for file, platform in files.items() if platform == config.platform]
    file = config.default_model_filename or next(iter(of_platform or files), "")
    platform = config.platform or files.get(file, "")
    return replace(
        config,
        name=case.model_directory.name,
        backend=config.backend or backend.traits.name,
        platform=platform,
        default_model_filename=file,
    )


def _context(case: BackendCase, config: ModelConfig) -> ModelContext:
    directory = case.model_directory
    return ModelContext(config, case.version, directory, directory / str(case.version), case.settings or {})


@contextmanager
def _loaded(backend: Backend, context: ModelContext) -> Iterator[Model]:
    model = backend.load(context)
    try:
        yield model
    finally:
        model.close()


def _instance(model: Model, name: str, case: BackendCase) -> Instance:
    return model.instantiate(Placement(name, "GPU" if case.gpus else "CPU", 0, ModelInstanceGroup(name="check")))


def _check_answers(instance: Instance, case: BackendCase, config: ModelConfig) -> None:
    if len(case.requests) != len(case.expected):
        raise ValueError(f"{len(case.requests)} requests and {len(case.expected)} expected answers")
    for number, (inputs, expected) in enumerate(zip(case.requests, case.expected, strict=True)):
        (responses,) = outputs_of(instance, [inputs], config)
        compare(responses, expected, case.tolerance, f"request {number} alone")
    if config.max_batch_size > 1:
        for start, together in batches(case.requests, config.max_batch_size):
            answers = outputs_of(instance, together, config)
            for number, responses in enumerate(answers, start):
                compare(responses, case.expected[number], case.tolerance, f"request {number} in a batch")


def _check_two_at_once(instances: Sequence[Instance], case: BackendCase, config: ModelConfig) -> None:
    failures: list[BaseException] = []
    barrier = threading.Barrier(len(instances), timeout=PATIENCE)

    def answer(instance: Instance) -> None:
        try:
            (responses,) = outputs_of(_Together(instance, barrier), [case.requests[0]], config)
            compare(responses, case.expected[0], case.tolerance, "request 0 on two instances at once")
        except BaseException as error:  # noqa: BLE001 - handed to the thread that checks
            failures.append(error)
            barrier.abort()

    threads = [threading.Thread(target=answer, args=(instance,), daemon=True) for instance in instances]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
        if thread.is_alive():
            raise ContractBroken(f"two instances at once: no answer within {PATIENCE:g} seconds")
    if failures:
        raise failures[0]


class _Together:
    """An instance whose executions begin when those of the others do."""

    def __init__(self, instance: Instance, barrier: threading.Barrier) -> None:
        self._instance = instance
        self._barrier = barrier

    def execute(self, batch: Batch) -> Answer | Future[Answer]:
        self._barrier.wait()
        return self._instance.execute(batch)

    def close(self) -> None:
        """The instance is the caller's."""


def _check_reports(model: Model, instance: Instance) -> None:
    ready: Callable[[], object] | None = getattr(instance, "ready", None)
    if ready is not None and ready() != "":
        raise ContractBroken(
            f"an instance that answers says it is not ready: {ready()!r}; ready() answers '' when it is"
        )
    usage: Callable[[], Sequence[object]] | None = getattr(model, "memory_usage", None)
    if usage is not None and not all(isinstance(each, MemoryUsage) for each in usage()):
        raise ContractBroken(f"memory_usage() answered {usage()!r}; it answers a sequence of MemoryUsage")


def _check_broken_files(backend: Backend, case: BackendCase) -> None:
    """In a copy of the folder, the model file is taken away, then filled with garbage."""
    config = _written(backend, case)
    name = config.default_model_filename
    if not name or not (case.model_directory / str(case.version) / name).is_file():
        return
    for what, content in (("is missing", None), ("holds garbage", b"\x00garbage\xff" * 64)):
        with TemporaryDirectory(prefix="naiad-check-") as temporary:
            copy = Path(temporary) / case.model_directory.name
            shutil.copytree(case.model_directory, copy)
            file = copy / str(case.version) / name
            file.unlink()
            if content is not None:
                file.write_bytes(content)
            _check_refused(backend, replace(case, model_directory=copy), config, f"a model file that {what}")


def _check_refused(backend: Backend, case: BackendCase, config: ModelConfig, what: str) -> None:
    try:
        completed = normalise(backend.complete(_context(case, config)), traits=backend.traits, gpus=case.gpus)
        with _loaded(backend, _context(case, completed)) as model:
            _instance(model, "check_0", case).close()
    except NaiadError as error:
        if not str(error):
            raise ContractBroken(f"{what} is refused without a word; name the file and the reason") from error
    except Exception as error:
        raise ContractBroken(
            f"{what} raises {type(error).__name__}; raise a NaiadError with the file's name"
        ) from error
    else:
        raise ContractBroken(f"{what} loads as if nothing were wrong")
