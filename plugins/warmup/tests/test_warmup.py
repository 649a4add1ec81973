"""Warming up: every instance of a version answers the samples before the version serves."""

import asyncio
import logging
import threading
from collections.abc import Sequence
from concurrent.futures import Future
from pathlib import Path

import numpy as np
import pytest

from naiad import Server
from naiad.backend import Answer, Batch, ModelContext, Reply
from naiad.errors import InvalidArgumentError
from naiad.hookspecs import hookimpl
from naiad.types import Request
from naiad.warmup import Warmup
from naiad_tensors.tensors import Tensor
from naiad_testing.backends import FakeBackend
from naiad_testing.in_loop import off_the_loop, request
from naiad_testing.loops import turns
from naiad_warmup.samples import WarmupSample, warmup_of

from .serving import running

ZERO = "data_type: TYPE_FP32 dims: [ 2 ] zero_data: true"


def warmup(name: str = "zero", value: str = ZERO, batch_size: int = 1, count: int = 0) -> str:
    sample = f'name: "{name}" batch_size: {batch_size} count: {count}'
    return f'model_warmup {{ {sample} inputs {{ key: "INPUT" value {{ {value} }} }} }}'


def echo(batch: Batch) -> Answer:
    return {"OUTPUT": batch.input("INPUT")}


async def test_every_instance_is_warmed_up_before_the_version_is_ready(tmp_path: Path) -> None:
    backend = FakeBackend()
    backend.write(tmp_path, "m", warmup(count=3) + "instance_group { count: 2 }")

    async with running(tmp_path, backend) as server:
        assert server.ready().ready
        assert [batch.input("INPUT").tolist() for batch in backend.batches] == [[0, 0]] * 6


async def test_a_version_is_loading_until_its_last_instance_is_warm(tmp_path: Path) -> None:
    backend = FakeBackend()
    backend.hold()
    backend.write(tmp_path, "m", warmup())

    async with running(tmp_path, backend, model_control_mode="explicit") as server:
        loading = asyncio.ensure_future(server.load("m"))
        await off_the_loop(backend.wait_until_held)
        assert [entry.state for entry in server.index()] == ["LOADING"]
        assert not server.ready().ready
        backend.release()
        await loading
        assert [entry.state for entry in server.index()] == ["READY"]


async def test_a_sample_goes_as_one_batch_where_the_model_batches(tmp_path: Path) -> None:
    backend = FakeBackend()
    backend.write(tmp_path, "m", "max_batch_size: 8 " + warmup(batch_size=3))

    async with running(tmp_path, backend):
        (batch,) = backend.batches

    assert (batch.sizes, batch.input("INPUT").shape) == ([1, 1, 1], (3, 2))


async def test_a_sample_goes_one_by_one_where_the_model_does_not_batch(tmp_path: Path) -> None:
    backend = FakeBackend()
    backend.write(tmp_path, "m", warmup(batch_size=3))

    async with running(tmp_path, backend):
        assert [batch.size for batch in backend.batches] == [1, 1, 1]


async def test_warming_up_counts_in_no_statistics(tmp_path: Path) -> None:
    backend = FakeBackend()
    backend.write(tmp_path, "m", warmup())

    async with running(tmp_path, backend) as server:
        (statistics,) = server.statistics("m")

    assert (statistics.inference_count, statistics.execution_count, statistics.last_inference) == (0, 0, 0)


async def test_a_file_warms_up(tmp_path: Path) -> None:
    backend = FakeBackend()
    values = 'data_type: TYPE_FP32 dims: [ 2 ] input_data_file: "raw"'
    folder = backend.write(tmp_path, "m", warmup(value=values))
    (folder / "warmup").mkdir()
    (folder / "warmup" / "raw").write_bytes(np.array([1, 2], dtype=np.float32).tobytes())

    async with running(tmp_path, backend):
        assert backend.batches[0].input("INPUT").tolist() == [1, 2]


async def test_reshape_and_futures_hold_in_warmup_too(tmp_path: Path) -> None:
    seen = []

    def execute(batch: Batch) -> Future[Answer]:
        seen.append(batch.input("INPUT").shape)
        future: Future[Answer] = Future()
        future.set_result([Reply({"OUTPUT": batch.input("INPUT").ravel()})])
        return future

    backend = FakeBackend(answer=execute)  # type: ignore[arg-type]
    reshaped = 'input { name: "INPUT" data_type: TYPE_FP32 dims: [ 4 ] reshape { shape: [ 2, 2 ] } }'
    output = 'output { name: "OUTPUT" data_type: TYPE_FP32 dims: [ 4 ] }'
    values = "data_type: TYPE_FP32 dims: [ 4 ] zero_data: true"
    backend.write(tmp_path, "m", f"{reshaped} {output} {warmup(value=values)}")

    async with running(tmp_path, backend) as server:
        assert server.ready().ready

    assert seen == [(2, 2)]


async def test_each_run_is_in_the_verbose_log(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "naiad.model")
    backend = FakeBackend()
    backend.write(tmp_path, "m", warmup(count=2))

    async with running(tmp_path, backend):
        pass

    runs = [record.getMessage() for record in caplog.records if "warmup sample" in record.getMessage()]
    assert runs == [
        f"model 'm' instance 'm_0' is running warmup sample 'zero' for iteration {iteration}" for iteration in (1, 2)
    ]


# Models that stream

STREAMS = "model_transaction_policy { decoupled: true } "


async def test_a_decoupled_model_is_warmed_up_to_the_end_of_its_stream(tmp_path: Path) -> None:
    threads: list[threading.Thread] = []

    def execute(batch: Batch) -> Answer:
        sender = batch.sender(0)
        last = Reply({"OUTPUT": batch.input("INPUT")})
        threads.append(threading.Thread(target=lambda: sender.send(last, True)))
        threads[-1].start()
        return [None]

    backend = FakeBackend(answer=execute)
    backend.write(tmp_path, "m", STREAMS + warmup())

    async with running(tmp_path, backend) as server:
        assert server.ready().ready
        assert len(threads) == 1


async def test_a_warmup_whose_sender_is_dropped_fails(tmp_path: Path) -> None:
    def execute(batch: Batch) -> Answer:
        batch.sender(0).send(Reply({"OUTPUT": batch.input("INPUT")}))
        backend.batches.clear()  # which keep the sender
        return [None]

    backend = FakeBackend(answer=execute)
    backend.write(tmp_path, "m", STREAMS + warmup())

    async with running(tmp_path, backend) as server:
        assert "dropped a response sender" in server.ready().reasons[0]


# Failing


def raising(batch: Batch) -> Answer:
    raise ZeroDivisionError("not with zeros")


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (raising, "ZeroDivisionError: not with zeros"),
        (lambda batch: {"OUTPUT": np.zeros(2)}, "model 'm' produced FP64 for output 'OUTPUT'"),
        (lambda batch: [InvalidArgumentError("too cold")], "too cold"),
        (lambda batch: [], "0 replies"),
    ],
    ids=["raises", "wrong answer", "error reply", "too few"],
)
async def test_a_warmup_that_fails_fails_the_load_and_names_the_sample(
    tmp_path: Path, answer: object, reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    backend = FakeBackend(answer=answer)  # type: ignore[arg-type]
    backend.write(tmp_path, "m", warmup("cold"))

    async with running(tmp_path, backend) as server:
        (entry,) = server.index()

    assert entry.state == "UNAVAILABLE"
    assert "failed to run warmup sample 'cold': " in entry.reason
    assert reason in entry.reason
    assert "(instance 'm_0')" in entry.reason
    assert ("Traceback" in caplog.text) == (answer is raising)


async def test_a_warmup_that_fails_leaves_nothing_open(tmp_path: Path) -> None:
    backend = FakeBackend(answer=raising)
    backend.write(tmp_path, "m", warmup() + "instance_group { count: 2 }")

    async with running(tmp_path, backend):
        pass

    closed = sorted(event for event in backend.events if event.startswith("close"))
    assert closed == ["close m 1", "close m_0_0", "close m_0_1"]


@pytest.mark.parametrize("error", [SystemExit("left"), KeyboardInterrupt("enough")])
async def test_a_warmup_that_ends_its_thread_fails_the_load(tmp_path: Path, error: BaseException) -> None:
    def leave(batch: Batch) -> Answer:
        raise error

    backend = FakeBackend(answer=leave)
    backend.write(tmp_path, "m", warmup())

    async with running(tmp_path, backend) as server:
        (entry,) = server.index()

    assert entry.state == "UNAVAILABLE"
    assert f"{type(error).__name__}: {error}" in entry.reason


async def test_a_sample_that_the_model_would_refuse_fails_the_load(tmp_path: Path) -> None:
    backend = FakeBackend()
    backend.write(tmp_path, "m", 'input { name: "INPUT" data_type: TYPE_FP32 dims: [ 3 ] }' + warmup())

    async with running(tmp_path, backend) as server:
        (entry,) = server.index()

    assert "warmup" in entry.reason
    assert "Expected [3], got [2]" in entry.reason


async def test_a_replaced_worker_is_warmed_up_too(tmp_path: Path) -> None:
    def answer(batch: Batch) -> Answer:
        if batch.input("INPUT")[0] == 666:
            raise SystemExit("gone")
        return echo(batch)

    backend = FakeBackend(answer=answer)
    backend.write(tmp_path, "m", warmup())

    async with running(tmp_path, backend) as server:
        dying = server.infer(request("m", 666, 666))
        await asyncio.gather(dying, return_exceptions=True)
        await server.infer(request("m", 1, 1))

    assert [batch.input("INPUT").tolist() for batch in backend.batches] == [[0, 0], [666, 666], [0, 0], [1, 1]]


# Warmup of other plugins


class Warming:
    """A plugin that warms up every model, or fails to."""

    def __init__(self, error: Exception | None = None) -> None:
        self._error = error

    @hookimpl
    def naiad_warmup(self, context: ModelContext) -> Sequence[Warmup]:
        if self._error is not None:
            raise self._error
        tensor = Tensor.of("INPUT", np.array([7], dtype=np.float32))
        return warmup_of(context, [WarmupSample("seven", [Request(context.config.name, {"INPUT": tensor})])])


async def test_plugins_warm_up_too(tmp_path: Path) -> None:
    backend = FakeBackend()
    backend.write(tmp_path, "m", warmup())

    async with running(tmp_path, backend, Warming()):
        assert sorted(batch.input("INPUT").tolist() for batch in backend.batches) == [[0, 0], [7]]


@pytest.mark.parametrize("error", [InvalidArgumentError("no samples for it"), KeyError("samples")])
async def test_a_warmup_plugin_that_fails_fails_the_load(tmp_path: Path, error: Exception) -> None:
    backend = FakeBackend()
    backend.write(tmp_path, "m")

    async with running(tmp_path, backend, Warming(error)) as server:
        await turns()
        (entry,) = server.index()

    assert entry.state == "UNAVAILABLE"
    assert "samples" in entry.reason


# Without this plugin


async def test_a_server_without_the_plugin_serves_the_model_and_the_log_says_what_to_install(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    backend = FakeBackend()
    backend.write(tmp_path, "m", warmup())

    async with Server(model_repository=[tmp_path], plugins=[backend]) as server:
        response = await server.infer(request("m", 1))

    assert response.outputs["OUTPUT"].array.tolist() == [1]
    assert len(backend.batches) == 1
    advice = "It comes with naiad-warmup: pip install 'naiad-warmup'."
    assert f"model 'm' asks for a warm-up. {advice}" in caplog.text


async def test_a_model_without_samples_needs_no_plugin(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    backend = FakeBackend()
    backend.write(tmp_path, "m")

    async with Server(model_repository=[tmp_path], plugins=[backend]) as server:
        assert server.ready().ready

    assert "warm-up" not in caplog.text
