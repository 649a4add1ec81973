"""Limits of shared memory regions: how many, how many descriptors they take, and whether inputs are lent."""

import asyncio
import logging
import resource

import pytest

from naiad.errors import UnavailableError, UnsupportedError
from naiad_shared_memory.guard import GUARD
from naiad_shared_memory.regions import SharedMemory
from naiad_shared_memory.segments import LARGE


def test_no_more_regions_are_registered_than_the_option_says(make_segment):
    memory, segment = SharedMemory(allowed=True, most_regions=2), make_segment(b"ab")
    memory.register_system("first", segment.key, 0, 2)
    memory.register_system("second", segment.key, 0, 2)

    with pytest.raises(UnavailableError, match="there are 2 regions, and --max-shared-memory-regions is 2"):
        memory.register_system("third", segment.key, 0, 2)

    memory.unregister("system", "first")
    memory.register_system("third", segment.key, 0, 2)
    assert memory.region("third").read(0, 2).tobytes() == b"ab"


def test_the_regions_of_a_segment_share_a_descriptor(memory, make_segment, count_descriptors):
    segment, other = make_segment(b"ab"), make_segment(b"cd")
    before = count_descriptors()

    for number in range(20):
        memory.register_system(f"r{number}", segment.key, number % 2, 1)
    memory.register_system("other", other.key, 0, 2)

    assert count_descriptors() == before + 2
    memory.unregister("system", "r0")
    assert memory.region("r1").read(0, 1).tobytes() == b"b"
    memory.unregister("system")
    assert count_descriptors() == before


def test_a_segment_made_anew_under_its_old_name_is_another(memory, make_segment):
    segment = make_segment(b"old")
    memory.register_system("old", segment.key, 0, 3)
    segment.unlink()
    segment.path.write_bytes(b"new")

    memory.register_system("new", segment.key, 0, 3)

    assert [memory.region(name).read(0, 3).tobytes() for name in ("old", "new")] == [b"old", b"new"]


def test_the_last_quarter_of_the_descriptors_is_kept_for_others(memory, make_segment, count_descriptors, monkeypatch):
    before = count_descriptors()  # more than six
    monkeypatch.setattr(resource, "getrlimit", lambda which: (8, 8))

    with pytest.raises(UnavailableError, match="keeps the last quarter for connections"):
        memory.register_system("r", make_segment().key, 0, 1)

    assert count_descriptors() == before


@pytest.mark.skipif(GUARD is None, reason="built without a C compiler")
def test_a_region_is_not_mapped_with_the_last_quarter_of_the_descriptors(make_segment, count_descriptors, monkeypatch):
    memory, segment = SharedMemory(allowed=True, lends=True), make_segment(bytes(LARGE))
    memory.register_system("r", segment.key, 0, LARGE)
    region = memory.region("r")
    before = count_descriptors()  # more than six
    monkeypatch.setattr(resource, "getrlimit", lambda which: (8, 8))

    loan = region.lend(0, LARGE)
    region.write(0, LARGE, b"\1" * LARGE, "OUT")

    assert (loan, count_descriptors()) == (None, before)
    assert segment.content == b"\1" * LARGE


@pytest.mark.skipif(GUARD is None, reason="built without a C compiler")
@pytest.mark.parametrize("lends", [False, True])
def test_inputs_are_lent_only_where_that_is_allowed(make_segment, lends):
    memory, segment = SharedMemory(allowed=True, lends=lends), make_segment(bytes(LARGE))
    memory.register_system("r", segment.key, 0, LARGE)

    loan = memory.region("r").lend(0, LARGE)

    assert (loan is not None) is lends
    if loan is not None:
        loan.end()


def of_options(allowed, lends, most_regions=9):
    return SharedMemory.of(
        {"allow-client-shm": allowed, "shared-memory-lending": lends, "max-shared-memory-regions": most_regions}
    )


@pytest.mark.skipif(GUARD is None, reason="built without a C compiler")
def test_the_options_of_a_server_are_the_limits_of_its_regions(make_segment):
    key = make_segment(bytes(LARGE)).key

    with pytest.raises(UnsupportedError):
        of_options(False, True).register_system("r", key, 0, LARGE)

    copying = of_options(True, False, most_regions=1)
    copying.register_system("r", key, 0, LARGE)
    assert copying.region("r").lend(0, LARGE) is None
    with pytest.raises(UnavailableError):
        copying.register_system("other", key, 0, LARGE)


@pytest.mark.parametrize("lends", [False, True])
def test_a_server_that_was_built_without_a_guard_says_so_where_it_should_lend(monkeypatch, caplog, lends):
    monkeypatch.setattr("naiad_shared_memory.regions.GUARD", None)
    caplog.set_level(logging.WARNING)

    asyncio.run(of_options(True, lends).start(None))

    assert len(caplog.records) == lends
