"""Sequences through a whole server: the real scheduler, workers, states, and models that ask for a request again."""

import asyncio
import gc
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from naiad import Server
from naiad.backend import RESCHEDULE, Batch, Reply, Reschedule, Sender
from naiad.errors import RequestCancelledError, UnavailableError, WorkerDiedError
from naiad_kit.metrics import MetricsApi
from naiad_testing.loops import until
from naiad_testing.tracing import FakeTrace

from .serving import PATIENT, Listening, ask, number, request, serving, summing

STRATEGIES = ["direct { }", "oldest { max_candidate_sequences: 16 }"]
DECOUPLED = "model_transaction_policy { decoupled: true }"


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("execute_on", ["thread", "event_loop"])
async def test_many_sequences_at_once_keep_their_sums_apart(tmp_path: Path, strategy: str, execute_on: str) -> None:
    backend = Listening()
    on = f"""parameters {{ key: "execute_on" value {{ string_value: "{execute_on}" }} }}"""

    async def sequence(who: int) -> list[int]:
        flags = ["start", "", "", "", "end"]
        return [await ask(server, who, who, flag) for flag in flags]

    async with serving(tmp_path, backend, f"{PATIENT} {strategy}", f"instance_group {{ count: 2 }} {on}") as server:
        sums = await asyncio.gather(*map(sequence, range(1, 31)))

    assert sums == [[who * count for count in range(1, 6)] for who in range(1, 31)]
    assert sorted(backend.heard) == [(who, "end") for who in range(1, 31)]


async def test_an_instance_hears_of_a_silent_sequence_on_its_own_thread(tmp_path: Path) -> None:
    backend = Listening()
    async with serving(tmp_path, backend, "max_sequence_idle_microseconds: 10000") as server:
        await ask(server, 1, who="quiet", flags="start")
        await until(lambda: backend.heard)

    assert backend.heard == [("quiet", "idle")]


async def test_an_instance_that_fails_to_listen_goes_on(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    class Deaf(Listening):
        heard = property(lambda self: None, lambda self, value: None)  # type: ignore[assignment]

    async with serving(tmp_path, Deaf()) as server:
        await ask(server, 1, flags="start end")

        assert await ask(server, 2, flags="start end") == 2

    assert "sequence 7 is over" in caplog.text


@pytest.mark.parametrize("execute_on", ["thread", "event_loop"])
async def test_an_instance_that_dies_of_what_it_hears_is_replaced(tmp_path: Path, execute_on: str) -> None:
    class Frail(Listening):
        heard = property(lambda self: (_ for _ in ()).throw(SystemExit("too much")), lambda self, value: None)  # type: ignore[assignment]

    on = f"""parameters {{ key: "execute_on" value {{ string_value: "{execute_on}" }} }}"""
    backend = Frail()
    async with serving(tmp_path, backend, rest=on, exit_timeout_secs=0) as server:
        await ask(server, 1, flags="start end")
        await until(lambda: backend.instances == 2)
        await until(lambda: server.model_ready("m").ready)

        assert await ask(server, 2, flags="start") == 2


async def test_a_start_in_the_middle_is_reported_in_the_log_once_a_minute(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with serving(tmp_path, Listening()) as server:
        flags = ("start", "start end", "start", "start end")
        sums = [await ask(server, 5, "one\ntwo", each) for each in flags]

    assert sums == [5, 5, 5, 5]
    assert caplog.text.count(r"sequence 'one\ntwo' of model 'm' starts anew before it has ended") == 1


async def test_a_request_that_is_taken_back_takes_its_sequence_along(tmp_path: Path) -> None:
    backend = Listening()
    async with serving(tmp_path, backend) as server:
        await ask(server, 1, flags="start")
        backend.hold()
        executing = asyncio.ensure_future(ask(server, 1))
        await asyncio.to_thread(backend.wait_until_held)
        second, third = (asyncio.ensure_future(ask(server, 1)) for _ in range(2))
        await asyncio.sleep(0)
        second.cancel()
        with pytest.raises(RequestCancelledError, match="earlier request"):
            await third
        backend.release()
        assert await executing == 2
        await until(lambda: backend.heard)

    assert backend.heard == [(7, "cancelled")]


async def test_a_sequence_whose_instance_dies_must_start_anew(tmp_path: Path) -> None:
    def dying(batch: Batch) -> Any:
        if batch.input("X")[0, 0] == 13:
            raise SystemExit("thirteen")
        return summing(batch)

    async with serving(tmp_path, Listening(dying)) as server:
        await ask(server, 1, flags="start")
        outcomes = await asyncio.gather(ask(server, 13), ask(server, 1), return_exceptions=True)

        assert await ask(server, 5, flags="start end") == 5

    assert [type(each) for each in outcomes] == [WorkerDiedError, UnavailableError]


@pytest.mark.parametrize("strategy", STRATEGIES)
async def test_an_iterative_model_counts_down_in_steps_that_others_share(tmp_path: Path, strategy: str) -> None:
    """X says how many steps a request takes; the state is how many it has had."""

    def stepping(batch: Batch) -> Sequence[Any]:
        answers: list[Any] = []
        for each in batch.requests:
            done = each.inputs["SUM_IN"].array + 1
            if int(done[0, 0]) < int(each.inputs["X"].array[0, 0]):
                answers.append(Reschedule({"SUM_OUT": done}))
            else:
                answers.append(Reply({"Y": done}))
        return answers

    backend = Listening(stepping)
    async with serving(tmp_path, backend, f"iterative_sequence: true {strategy}") as server:
        outcomes = await asyncio.gather(*(ask(server, steps, who=0) for steps in (5, 1, 3, 4, 2, 2)))
        assert server.statistics("m")[0].success.count == 6

    assert outcomes == [5, 1, 3, 4, 2, 2]
    assert {reason for _, reason in backend.heard} == {"end"}
    assert len(backend.heard) == 6


async def test_an_iterative_decoupled_model_sends_a_response_in_every_step(tmp_path: Path) -> None:
    def stepping(batch: Batch) -> Sequence[Any]:
        answers: list[Any] = []
        for index, each in enumerate(batch.requests):
            done, last = int(each.inputs["SUM_IN"].array[0, 0]) + 1, int(each.inputs["X"].array[0, 0])
            batch.sender(index).send(Reply({"Y": np.full((1, 1), done, np.int32)}), final=done == last)
            answers.append(None if done == last else Reschedule({"SUM_OUT": np.full((1, 1), done, np.int32)}))
        gc.collect()
        return answers

    async def stream(steps: int) -> list[int]:
        return [number(each) async for each in server.stream(request(steps, who=0))]

    async with serving(tmp_path, Listening(stepping), "iterative_sequence: true oldest { }", DECOUPLED) as server:
        outcomes = await asyncio.gather(stream(4), stream(1), stream(2))

    assert outcomes == [[1, 2, 3, 4], [1], [1, 2]]


async def test_responses_in_order_do_not_keep_an_earlier_request_from_its_next_step(tmp_path: Path) -> None:
    """The second request sends much while the first, which has sent nothing yet, has to be executed again."""

    def stepping(batch: Batch) -> Sequence[Any]:
        answers: list[Any] = []
        for index, each in enumerate(batch.requests):
            steps, done = int(each.inputs["X"].array[0, 0]), int(each.inputs["SUM_IN"].array[0, 0]) + 1
            answers.append(Reschedule({"SUM_OUT": np.full((1, 1), done, np.int32)}))
            if done == steps:
                answers[-1] = None
                for value in range(100):
                    batch.sender(index).send(Reply({"Y": np.full((1, 1), value, np.int32)}), final=value == 99)
        return answers

    async def stream(steps: int) -> list[int]:
        return [number(each) async for each in server.stream(request(steps, who=0))]

    batching = "iterative_sequence: true oldest { max_candidate_sequences: 4 preserve_ordering: true }"
    async with serving(tmp_path, Listening(stepping), batching, DECOUPLED) as server:
        outcomes = await asyncio.wait_for(asyncio.gather(stream(5), stream(1), stream(2)), 10)

    assert outcomes == [list(range(100))] * 3


async def test_a_trace_follows_a_request_through_all_its_steps(tmp_path: Path) -> None:
    def twice(batch: Batch) -> Sequence[Any]:
        done = batch.input("SUM_IN")
        return [Reply({"Y": done})] if done[0, 0] else [Reschedule({"SUM_OUT": done + 1})]

    trace = FakeTrace()
    async with serving(tmp_path, Listening(twice), "iterative_sequence: true") as server:
        await server.infer(request(1, who=0, trace=trace))

    assert trace.events.count("COMPUTE_START") == 2
    assert trace.events.count("REQUEST_END") == 1
    assert trace.events[-1] == "REQUEST_END"


async def test_callers_of_an_iterative_model_that_say_the_same_id_are_distinguished(tmp_path: Path) -> None:
    seen: dict[int | str, int] = {}

    def counting(batch: Batch) -> Sequence[Any]:
        answers: list[Any] = []
        for each in batch.requests:
            times = seen[each.correlation_id] = seen.get(each.correlation_id, 0) + 1
            last = times == int(each.inputs["X"].array[0, 0])
            answers.append(Reply({"Y": np.full((1, 1), times, np.int32)}) if last else RESCHEDULE)
        return answers

    async with serving(tmp_path, Listening(counting), "iterative_sequence: true oldest {}") as server:
        outcomes = await asyncio.gather(*(ask(server, 3, who, "start") for who in (7, 7, 0, 2)))

    assert outcomes == [3, 3, 3, 3]
    assert seen == {1: 3, 2: 3, 3: 3, 4: 3}


async def test_a_model_that_asks_for_ever_is_stopped_by_its_caller(tmp_path: Path) -> None:
    backend = Listening(lambda batch: [RESCHEDULE] * len(batch.requests))
    async with serving(tmp_path, backend, "iterative_sequence: true") as server:
        task = asyncio.ensure_future(server.infer(request(1, who=0)))
        await until(lambda: len(backend.batches) >= 3)

        task.cancel()
        await until(lambda: backend.heard)

    assert [reason for _, reason in backend.heard] == ["cancelled"]


async def test_a_sender_of_a_request_that_waits_for_its_next_step_sees_that_its_caller_left(tmp_path: Path) -> None:
    """The instance executes another request meanwhile, so that the first one only waits when its caller leaves."""
    senders: list[Sender] = []
    others, go_on = threading.Event(), threading.Event()

    def stepping(batch: Batch) -> Sequence[Any]:
        if int(batch.requests[0].inputs["X"].array[0, 0]) == 1:
            senders.append(batch.sender(0))
            return [RESCHEDULE]
        batch.sender(0).send(Reply({"Y": np.ones((1, 1), np.int32)}), final=True)
        others.set()
        assert go_on.wait(20)
        return [None]

    async def stream(what: int) -> list[int]:
        return [number(each) async for each in server.stream(request(what, who=0))]

    batching = "iterative_sequence: true oldest { max_candidate_sequences: 2 }"
    async with serving(tmp_path, Listening(stepping), batching, DECOUPLED, batch_size=1) as server:
        first = asyncio.ensure_future(stream(1))
        await until(lambda: senders)
        second = asyncio.ensure_future(stream(2))
        await until(others.is_set)
        first.cancel()
        await asyncio.wait([first])
        was_sent = senders[0].send(Reply({"Y": np.ones((1, 1), np.int32)}))
        go_on.set()
        assert await second == [1]
        senders.clear()

    assert not was_sent


async def test_metrics_count_how_many_sequences_live_and_wait(tmp_path: Path) -> None:
    async with serving(tmp_path, Listening(), "oldest { }") as server:
        await ask(server, 1, who=1, flags="start")
        waiting = asyncio.ensure_future(ask(server, 1, who=2, flags="start end"))
        await asyncio.sleep(0)
        meanwhile = gauges(server)
        await ask(server, 1, who=1, flags="end")
        await waiting

        assert meanwhile == {"naiad_sequences_live": 1, "naiad_sequences_backlog": 1}
        assert gauges(server) == {"naiad_sequences_live": 0, "naiad_sequences_backlog": 0}


def gauges(server: Server) -> dict[str, float]:
    """What metrics say of sequences."""
    return {
        family.name: sample.value
        for family in server.service(MetricsApi).collect()
        for sample in family.samples
        if family.name.startswith("naiad_sequences")
    }
