"""Regions over POSIX shared memory: registering, reading, writing, forgetting."""

import asyncio

import pytest

from naiad.errors import AlreadyExistsError, InvalidArgumentError, NotFoundError, UnsupportedError
from naiad_kit.shared_memory import SystemRegion
from naiad_shared_memory.regions import SharedMemory


def test_a_region_is_the_part_of_the_segment_that_was_registered(memory, make_segment):
    segment = make_segment()

    memory.register_system("part", segment.key, 16, 32)

    assert memory.region("part").read(0, 32).tolist() == list(range(16, 48))
    assert memory.region("part").read(8, 2).tolist() == [24, 25]


def test_what_is_read_is_a_copy_of_ones_own(memory, make_segment):
    segment = make_segment(b"before")
    memory.register_system("r", segment.key, 0, 6)

    array = memory.region("r").read(0, 6)
    segment.path.write_bytes(b"after!")

    assert array.tobytes() == b"before"
    assert array.flags.writeable


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_an_output_is_written_where_it_belongs(memory, make_segment, kind):
    segment = make_segment(b"." * 12)
    memory.register_system("r", segment.key, 2, 8)

    memory.region("r").write(1, 7, kind(b"abcde"), "OUT")

    assert segment.content == b"...abcde...."


def test_nothing_is_read_and_written_where_nothing_is_asked_for(memory, make_segment):
    segment = make_segment(b"abcd")
    memory.register_system("r", segment.key, 0, 4)

    memory.region("r").write(3, 0, b"", "OUT")
    memory.region("r").write(3, 1, b"", "OUT")

    assert memory.region("r").read(3, 0).size == 0
    assert segment.content == b"abcd"


def test_several_regions_may_share_a_segment(memory, make_segment):
    segment = make_segment(b"ab")
    memory.register_system("all", segment.key, 0, 2)
    memory.register_system("second", segment.key, 1, 1)

    memory.region("second").write(0, 1, b"B", "OUT")

    assert memory.region("all").read(0, 2).tobytes() == b"aB"


@pytest.mark.parametrize("slashes", ["", "/", "///"])
def test_a_key_may_start_with_any_number_of_slashes(memory, make_segment, slashes):
    segment = make_segment(b"ab")

    memory.register_system("r", slashes + segment.key.lstrip("/"), 0, 2)

    assert memory.region("r").read(0, 2).tobytes() == b"ab"
    assert memory.status("system")[0].key == slashes + segment.key.lstrip("/")


def test_status_tells_what_was_registered(memory, make_segment):
    segment = make_segment()
    memory.register_system("a", segment.key, 0, 8)
    memory.register_system("b", segment.key, 8, 8)

    assert memory.status("system", "b") == [SystemRegion("b", segment.key, 8, 8)]
    assert [region.name for region in memory.status("system")] == ["a", "b"]
    assert memory.status("cuda") == []


def test_the_status_of_an_unknown_region_is_an_error(memory):
    with pytest.raises(NotFoundError, match="Unable to find system shared memory region: 'r'"):
        memory.status("system", "r")
    with pytest.raises(NotFoundError, match="Unable to find cuda shared memory region: 'r'"):
        memory.status("cuda", "r")


def test_a_system_region_is_no_cuda_region(memory, make_segment):
    memory.register_system("r", make_segment().key, 0, 8)

    memory.unregister("cuda", "r")
    memory.unregister("cuda")

    with pytest.raises(NotFoundError, match="'r' is registered as system shared memory, not CUDA shared memory"):
        memory.status("cuda", "r")


def test_a_name_is_taken_until_it_is_unregistered(memory, make_segment):
    first, second = make_segment(b"first"), make_segment(b"second")
    memory.register_system("r", first.key, 0, 5)

    with pytest.raises(AlreadyExistsError, match="shared memory region 'r' already in manager"):
        memory.register_system("r", second.key, 0, 6)
    memory.unregister("system", "r")
    memory.register_system("r", second.key, 0, 6)

    assert memory.region("r").read(0, 6).tobytes() == b"second"


def test_unregistering_what_is_not_there_is_fine(memory, make_segment):
    memory.register_system("r", make_segment().key, 0, 8)

    memory.unregister("system", "other")

    assert len(memory.status("system")) == 1


def test_all_regions_are_unregistered_at_once(memory, make_segment):
    memory.register_system("a", make_segment().key, 0, 8)
    memory.register_system("b", make_segment().key, 0, 8)

    memory.unregister("system")

    assert memory.status("system") == []
    with pytest.raises(NotFoundError, match="Unable to find shared memory region: 'a'"):
        memory.region("a")


def test_a_request_keeps_its_region_when_another_takes_the_name(memory, make_segment):
    first, second = make_segment(b"first"), make_segment(b"other")
    memory.register_system("r", first.key, 0, 5)
    held = memory.region("r")

    memory.unregister("system", "r")
    memory.register_system("r", second.key, 0, 5)
    held.write(0, 5, b"mine!", "OUT")

    assert (first.content, second.content) == (b"mine!", b"other")


def test_the_descriptor_is_closed_with_the_last_user(memory, make_segment, count_descriptors):
    before = count_descriptors()
    memory.register_system("r", make_segment().key, 0, 8)
    held = memory.region("r")

    memory.unregister("system", "r")
    assert count_descriptors() == before + 1
    assert held.read(0, 1).tolist() == [0]
    del held

    assert count_descriptors() == before


def test_a_server_that_ends_lets_go_of_everything(memory, make_segment, count_descriptors):
    before = count_descriptors()
    memory.register_system("r", make_segment().key, 0, 8)

    asyncio.run(memory.stop(1.0))

    assert count_descriptors() == before


def test_clients_may_not_register_unless_the_option_says_so(make_segment):
    memory = SharedMemory(allowed=False)
    key = make_segment().key

    for forbidden in (
        lambda: memory.register_system("r", key, 0, 8),
        lambda: memory.register_cuda("r", bytes(64), 0, 8),
        lambda: memory.unregister("system", "r"),
        lambda: memory.unregister("cuda"),
    ):
        with pytest.raises(UnsupportedError, match=r"Client shared memory is disabled\. .*'--allow-client-shm=true'"):
            forbidden()
    assert memory.status("system") == []


def test_a_region_needs_a_name(memory, make_segment):
    with pytest.raises(InvalidArgumentError, match="needs a name"):
        memory.register_system("", make_segment().key, 0, 8)
