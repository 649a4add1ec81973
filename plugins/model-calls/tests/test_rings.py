"""Models that wait for one another: one call of the ring is refused, and all the others are answered."""

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

import naiad_cache
from naiad import Server
from naiad.backend import Answer, Batch
from naiad.errors import CallRingError, NaiadError
from naiad_kit.calls import ModelCalls, Responses
from naiad_model_calls.deadlocks import CHECK_SECONDS
from naiad_testing.caches import FakeCache
from naiad_testing.in_loop import off_the_loop, request
from naiad_testing.loops import jump, passing_time, until

from .models_that_call import TWO, Behaviour, Calling, output_of, reply, value, value_of

DECOUPLED = "model_transaction_policy { decoupled: true }\n"


def waiting(server: Server, model: str) -> int:
    """How many requests wait for an instance of that model."""
    return next(each.waiting for each in server.version_reports() if each.name == model)


def is_idle(server: Server, model: str) -> bool:
    """Whether no instance of that model executes."""
    report = next(each for each in server.version_reports() if each.name == model)
    return not any(instance.busy_seconds for instance in report.instances)


def in_flight(server: Server, model: str) -> int:
    """How many requests wait for that model or are executed by it."""
    return next(each.outstanding for each in server.version_reports() if each.name == model)


def counts_down_through(name: str) -> Behaviour:
    """A model that asks another with one less, until nothing is left, and counts the steps."""

    def behaviour(batch: Batch, models: ModelCalls) -> Answer:
        depth = value_of(batch)
        return output_of(depth if depth < 1 else value(models.infer(request(name, depth - 1))) + 1)

    return behaviour


async def test_a_model_that_calls_itself_on_its_only_instance_is_refused(calling: Calling) -> None:
    calling.add("m", counts_down_through("m"))

    async with calling.running() as server:
        with passing_time():
            with pytest.raises(
                CallRingError, match=r"from model 'm' to model 'm' would wait for ever.*ring 'm' -> 'm'"
            ):
                await server.infer(request("m", 1))
            assert value(await server.infer(request("m", 0))) == 0


async def test_a_model_that_calls_itself_with_a_free_instance_is_answered(calling: Calling) -> None:
    calling.add("m", counts_down_through("m"), TWO)

    async with calling.running() as server:
        with passing_time():
            assert value(await server.infer(request("m", 1))) == 1
            with pytest.raises(CallRingError, match="'m' -> 'm'"):
                await server.infer(request("m", 2))


async def test_two_models_that_call_each_other_go_as_deep_as_there_are_instances(calling: Calling) -> None:
    calling.add("a", counts_down_through("b"), TWO)
    calling.add("b", counts_down_through("a"), TWO)

    async with calling.running() as server:
        with passing_time():
            assert value(await server.infer(request("a", 3))) == 3
            with pytest.raises(CallRingError, match=r"from model 'b' to model 'a'.*(ring 'b' -> 'a' -> 'b')"):
                await server.infer(request("a", 4))


async def test_a_ring_over_two_requests_is_refused_and_the_other_request_is_answered(calling: Calling) -> None:
    both = threading.Barrier(2)

    def crosses_over(name: str) -> Behaviour:
        def behaviour(batch: Batch, models: ModelCalls) -> Answer:
            if value_of(batch) < 1:
                return output_of(0)
            both.wait(10)
            return output_of(value(models.infer(request(name, 0))) + 1)

        return behaviour

    calling.add("a", crosses_over("b"))
    calling.add("b", crosses_over("a"))

    async with calling.running() as server:
        with passing_time():
            outcomes = await asyncio.gather(
                server.infer(request("a", 1)), server.infer(request("b", 1)), return_exceptions=True
            )

    assert sorted(type(outcome).__name__ for outcome in outcomes) == ["CallRingError", "Response"]


async def test_many_requests_that_call_each_other_are_all_answered_or_refused(calling: Calling) -> None:
    for name, other in zip("abc", "bca", strict=True):
        calling.add(name, counts_down_through(other), TWO)

    async with calling.running() as server:
        with passing_time():
            outcomes = await asyncio.gather(
                *(server.infer(request("abc"[number % 3], number % 5)) for number in range(200)), return_exceptions=True
            )

    values = [value(outcome) for outcome in outcomes if not isinstance(outcome, BaseException)]
    refused = [outcome for outcome in outcomes if isinstance(outcome, BaseException)]
    assert {type(each) for each in refused} <= {CallRingError}
    assert len(values) + len(refused) == 200
    assert len(values) >= 40  # those that call no other model


async def test_a_call_waits_for_an_instance_that_works_on_something_else(calling: Calling) -> None:
    executing, release = threading.Event(), threading.Event()

    def works(batch: Batch, _: ModelCalls) -> Answer:
        if value_of(batch) == 1:
            executing.set()
            assert release.wait(10)
        return output_of(value_of(batch))

    calling.add("works", works)
    calling.add("outer", lambda batch, models: output_of(value(models.infer(request("works", 2)))))

    async with calling.running() as server:
        with passing_time():
            first = asyncio.ensure_future(server.infer(request("works", 1)))
            await off_the_loop(executing.wait)
            second = asyncio.ensure_future(server.infer(request("outer", 1)))
            await until(lambda: waiting(server, "works"))
            release.set()

            assert value(await second) == 2
            assert value(await first) == 1


async def test_a_ring_through_a_model_in_between_names_all_of_them(calling: Calling) -> None:
    calling.add("a", counts_down_through("b"))
    calling.add("b", counts_down_through("c"))
    calling.add("c", counts_down_through("a"))

    async with calling.running() as server:
        with passing_time(), pytest.raises(CallRingError, match="ring 'c' -> 'a' -> 'b' -> 'c'"):
            await server.infer(request("a", 3))


async def test_a_ring_of_streams_is_refused(calling: Calling) -> None:
    def streams(batch: Batch, models: ModelCalls) -> Answer:
        sender = batch.sender(0)
        depth = value_of(batch)
        try:
            for response in models.stream(request("m", depth - 1)) if depth else ():
                sender.send(reply(value(response)))
        except NaiadError as error:
            sender.send(error, final=True)
        else:
            sender.send(reply(depth), final=True)
        return [None]

    calling.add("m", streams, DECOUPLED)

    async with calling.running() as server:
        with passing_time(), pytest.raises(CallRingError, match="'m' -> 'm'"):
            async for _ in server.stream(request("m", 1)):
                pass


async def test_calls_of_an_execution_that_goes_on_in_the_background_are_followed(calling: Calling) -> None:
    """A decoupled model returns and calls from a thread: its instance is free, and takes the call that it makes."""
    errors: list[NaiadError] = []
    loop = asyncio.get_running_loop()

    def goes_on(batch: Batch, models: ModelCalls) -> Answer:
        sender, depth = batch.sender(0), value_of(batch)

        def later() -> None:
            # the check of a call takes an execution that returns only after it for one that waits
            asyncio.run_coroutine_threadsafe(until(lambda: is_idle(server, "m")), loop).result()
            try:
                values = [value(response) for response in models.stream(request("m", depth - 1))] if depth else []
            except NaiadError as error:
                errors.append(error)
                values = []
            sender.send(reply(len(values) + depth), final=True)

        threading.Thread(target=later).start()
        return [None]

    calling.add("m", goes_on, DECOUPLED)

    async with calling.running() as server:
        with passing_time():
            values = [value(response) async for response in server.stream(request("m", 3))]

    assert (values, errors) == ([4], [])


async def test_a_call_that_was_begun_and_is_over_is_not_waited_for(calling: Calling) -> None:
    def asks_one_after_the_other(batch: Batch, models: ModelCalls) -> Answer:
        return output_of(sum(value(models.infer(request("double", 1))) for _ in range(100)))

    calling.add("outer", asks_one_after_the_other)

    async with calling.running() as server:
        with passing_time():
            assert value(await server.infer(request("outer", 1))) == 200


@pytest.mark.parametrize("elsewhere", [False, True], ids=["in execute", "on a thread of its own"])
async def test_a_ring_is_refused_when_it_has_lasted_for_a_moment(calling: Calling, elsewhere: bool) -> None:
    def calls_itself(batch: Batch, models: ModelCalls) -> Answer:
        if not elsewhere:
            return output_of(value(models.infer(request("m", 1))))
        with ThreadPoolExecutor(1) as threads:
            return output_of(value(threads.submit(models.infer, request("m", 1)).result()))

    calling.add("m", calls_itself)

    async with calling.running() as server:
        answer = asyncio.ensure_future(server.infer(request("m", 1)))
        await until(lambda: in_flight(server, "m") == 2)
        await jump(CHECK_SECONDS - 0.01)
        assert not answer.done()
        await jump(2 * CHECK_SECONDS)

        with pytest.raises(CallRingError, match="'m' -> 'm'"):
            await answer


async def test_an_execution_that_has_returned_meanwhile_is_in_no_ring(calling: Calling) -> None:
    """A decoupled model calls itself on its only instance from a thread, before its execution returns."""
    begun, go_on = threading.Event(), threading.Event()
    kept: list[Responses] = []

    def goes_on(batch: Batch, models: ModelCalls) -> Answer:
        sender = batch.sender(0)
        if value_of(batch):
            kept.append(models.stream(request("m", 0)))
            kept[0].begin_next().add_done_callback(lambda done: sender.send(reply(7), final=True))
            begun.set()
            assert go_on.wait(10)
        else:
            sender.send(reply(1), final=True)
        return [None]

    calling.add("m", goes_on, DECOUPLED)

    async with calling.running() as server:
        stream = server.stream(request("m", 1))
        first = asyncio.ensure_future(anext(stream))
        await off_the_loop(begun.wait)
        await until(lambda: waiting(server, "m"))
        await jump(CHECK_SECONDS - 0.01)
        go_on.set()
        response = await first
        await stream.aclose()

    assert value(response) == 7


async def test_who_waits_for_a_ring_is_answered_when_one_of_the_ring_is_refused(calling: Calling) -> None:
    """The newest call of the ring is refused, not a newer one that waits outside of it."""
    inside, go_on = threading.Event(), threading.Event()

    def calls_itself(batch: Batch, models: ModelCalls) -> Answer:
        if not value_of(batch):
            return output_of(0)
        inside.set()
        assert go_on.wait(10)
        try:
            return output_of(value(models.infer(request("m", 0))))
        except CallRingError:
            return output_of(5)

    calling.add("m", calls_itself)
    calling.add("outer", lambda batch, models: output_of(value(models.infer(request("m", 0))) + 1))

    async with calling.running() as server:
        first = asyncio.ensure_future(server.infer(request("m", 1)))
        await off_the_loop(inside.wait)
        go_on.set()
        await until(lambda: waiting(server, "m") == 1)
        second = asyncio.ensure_future(server.infer(request("outer", 1)))
        await until(lambda: waiting(server, "m") == 2)
        with passing_time():
            assert (value(await first), value(await second)) == (5, 1)


@pytest.mark.parametrize("is_held", [False, True])
async def test_a_ring_is_refused_behind_a_response_cache_too(calling: Calling, is_held: bool) -> None:
    cache = FakeCache()
    calling.add("m", counts_down_through("m"), "response_cache { enable: true }")

    async with calling.running(naiad_cache, cache, cache_config=("fake",)) as server:
        with passing_time():
            if is_held:
                cache.hold()
            answer = asyncio.ensure_future(server.infer(request("m", 1)))
            if is_held:  # the cache answers later, and the call is refused when it is sent on to its model
                for lookups in (1, 2):
                    await until(lambda lookups=lookups: cache.events.count("lookup") == lookups)
                    cache.release()
                    cache.hold()
            with pytest.raises(CallRingError, match="'m' -> 'm'"):
                await answer
            cache.release()
            assert value(await server.infer(request("m", 0))) == 0
            assert value(await server.infer(request("m", 1))) == 1
