"""Readiness watch: one poll for all watchers."""

import asyncio
from types import SimpleNamespace

import pytest

from naiad_grpc.service.readiness import ReadinessPoll


class Polled:
    """A poll whose server is ready as a test says, with the number of its checks."""

    def __init__(self):
        self.answer = True
        self.checks = 0
        self.pauses = 0
        self.stopping = asyncio.Event()
        self.poll = ReadinessPoll(self._check, self.stopping, self._pause)
        self._end = asyncio.Event()

    async def next_check(self):
        """Let the pause end, and all who are concerned run."""
        self._end.set()
        await self.settle()

    async def settle(self):
        for _ in range(10):
            await asyncio.sleep(0)

    def watch(self):
        """A client that notes what it receives."""
        seen = []

        async def main():
            async for ready in self.poll.watch():
                seen.append(ready)

        return SimpleNamespace(seen=seen, task=asyncio.ensure_future(main()))

    def _check(self):
        self.checks += 1
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer

    async def _pause(self):
        self.pauses += 1
        await self._end.wait()
        self._end.clear()


def test_a_thousand_watchers_cost_one_check_a_pause_and_see_each_change_once():
    async def main():
        polled = Polled()
        watchers = [polled.watch() for _ in range(1000)]
        await polled.settle()
        opened = polled.checks
        for polled.answer in (True, False, False, True):
            await polled.next_check()
        polled.stopping.set()
        await polled.next_check()
        await asyncio.gather(*(each.task for each in watchers))
        return polled.checks - opened, {tuple(each.seen) for each in watchers}

    checks, seen = asyncio.run(main())

    assert (checks, seen) == (4, {(True, False, True, False)})


def test_there_are_no_checks_after_the_last_watcher_leaves():
    async def main():
        polled = Polled()
        first, second = polled.watch(), polled.watch()
        await polled.settle()
        first.task.cancel()
        await polled.next_check()
        with_one = polled.checks
        second.task.cancel()
        await polled.settle()
        await polled.next_check()
        return with_one, polled.checks, len(asyncio.all_tasks())

    with_one, with_none, tasks = asyncio.run(main())

    assert (with_one, with_none, tasks) == (3, 3, 1)


def test_a_watcher_that_comes_later_gets_the_status_of_that_moment_and_so_do_the_others():
    async def main():
        polled = Polled()
        first = polled.watch()
        await polled.settle()
        polled.answer = False
        second = polled.watch()
        await polled.settle()
        for each in (first, second):
            each.task.cancel()
        return first.seen, second.seen, polled.pauses

    assert asyncio.run(main()) == ([True, False], [False], 1)


def test_a_watcher_that_comes_when_the_frontend_stops_gets_not_ready_and_the_end():
    async def main():
        polled = Polled()
        polled.stopping.set()
        watcher = polled.watch()
        await watcher.task
        return watcher.seen

    assert asyncio.run(main()) == [False]


def test_a_check_that_fails_ends_every_watch_with_its_error_and_the_next_watch_polls_again():
    async def main():
        polled = Polled()
        watchers = [polled.watch(), polled.watch()]
        await polled.settle()
        polled.answer = ValueError("no readiness")
        await polled.next_check()
        for each in watchers:
            with pytest.raises(ValueError, match="no readiness"):
                await each.task
        polled.answer = True
        later = polled.watch()
        await polled.settle()
        polled.answer = False
        await polled.next_check()
        later.task.cancel()
        return later.seen

    assert asyncio.run(main()) == [True, False]
