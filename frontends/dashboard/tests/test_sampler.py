"""The sampler: it reads while somebody looks, and keeps what it reads in bounds."""

import asyncio
from contextlib import aclosing
from types import SimpleNamespace

from naiad.reports import VersionReport
from naiad_config import ModelConfig
from naiad_dashboard.sampler import SECONDS, Sampler, Track


def report(name="m", version=1):
    config = ModelConfig(name=name)
    return VersionReport(name, version, config, 1.0, 0, 0, {}, 0, 0, {}, (), ())


class Server:
    def __init__(self):
        self.looks = 0
        self.names = ["a", "b"]

    def version_reports(self):
        self.looks += 1
        return (report(name) for name in self.names)


async def test_nothing_is_read_while_there_is_no_viewer():
    server = Server()
    sampler = Sampler(server, interval=0.001)

    async with aclosing(sampler.watch()) as samples:
        for _ in range(3):
            await anext(samples)
        assert sampler.viewers == 1
    looks = server.looks
    others = [asyncio.sleep(0.005) for _ in range(4)]
    await asyncio.gather(*others)

    assert looks >= 3
    assert (server.looks, sampler.viewers) == (looks, 0)


async def test_all_viewers_share_a_sample():
    server = Server()
    sampler = Sampler(server, interval=60.0)

    async with aclosing(sampler.watch()) as first, aclosing(sampler.watch()) as second:
        await asyncio.gather(anext(first), anext(second))

    assert server.looks == 1


async def test_a_version_that_is_gone_is_forgotten():
    server = Server()
    sampler = Sampler(server, interval=0.0)

    await sampler.look()
    server.names = ["b"]
    await sampler.look()

    assert list(sampler.tracks) == [("b", 1)]


async def test_streams_end_when_the_sampler_stops():
    sampler = Sampler(Server(), interval=60.0)
    watching = asyncio.ensure_future(_consume(sampler))
    await asyncio.sleep(0)

    sampler.stop()

    assert await asyncio.wait_for(watching, 5) <= 1
    assert sampler.is_full


async def _consume(sampler):
    count = 0
    async with aclosing(sampler.watch()) as samples:
        async for _ in samples:
            count += 1
    return count


def test_five_minutes_are_kept_and_no_more():
    track = Track(report())

    for second in range(1000):
        track.add(report(), float(second))

    assert len(track.points) == SECONDS
    assert len(track.readings) == 11
    track.add(report(), 5000.0)
    assert len(track.points) == 1


def test_points_of_a_time_when_somebody_looked_before_are_dropped_by_age():
    track = Track(report())
    for at in (0.0, 1.0, 400.0):
        track.add(report(), at)

    assert [point.at for point in track.points] == [400.0]
    assert track.points[-1].rate is None  # a rate over minutes would say nothing about now


def test_a_full_sampler_takes_no_further_viewer():
    sampler = Sampler(SimpleNamespace(version_reports=lambda: ()), most=0)

    assert sampler.is_full
