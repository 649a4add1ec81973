"""Clients that lie about their memory, and those that take it away while the server uses it: errors, nothing worse."""

import asyncio
import fcntl
import os
import signal
import threading

import pytest

from naiad.errors import InvalidArgumentError, NotFoundError, UnavailableError
from naiad_shared_memory.extents import is_left
from naiad_shared_memory.segments import LARGE

LARGEST = 2**64 - 1


@pytest.fixture(autouse=True)
def no_descriptor_is_left_over(memory, count_descriptors):
    before = count_descriptors()
    yield
    asyncio.run(memory.stop(1.0))
    assert count_descriptors() == before


def register(memory, segment, offset=0, byte_size=64):
    memory.register_system("r", segment.key, offset, byte_size)
    return memory.region("r")


def test_a_segment_must_be_there(memory):
    with pytest.raises(NotFoundError, match="Unable to open shared memory region: '/naiad_test_nowhere'"):
        memory.register_system("r", "/naiad_test_nowhere", 0, 8)


@pytest.mark.parametrize("key", ["", "/", "///", "/.", "/..", "..", "/../etc/passwd", "/a/b", "a/", "/etc/passwd"])
def test_a_key_does_not_leave_the_folder_of_segments(memory, key):
    with pytest.raises(InvalidArgumentError, match="cannot register shared memory region 'r' - invalid shm key"):
        memory.register_system("r", key, 0, 8)


@pytest.mark.parametrize("key", ["/a\0b", "/" + "n" * 300, "/\ud800"])
def test_a_key_that_the_system_cannot_take_is_refused(memory, key):
    with pytest.raises(InvalidArgumentError, match="Unable to open"):
        memory.register_system("r", key, 0, 8)


@pytest.mark.parametrize("slashes", ["", "/", "//"])
def test_the_memory_of_python_models_is_not_for_clients(memory, slashes):
    key = slashes + "triton_python_backend_shm_region_1"

    with pytest.raises(InvalidArgumentError, match=f"'{key}' as the key contains the reserved prefix"):
        memory.register_system("r", key, 0, 8)


def test_a_link_is_not_followed(memory, make_segment, tmp_path):
    secret = tmp_path / "secret"
    secret.write_bytes(bytes(64))
    link = make_segment()
    link.unlink()
    link.path.symlink_to(secret)

    with pytest.raises(InvalidArgumentError, match="Unable to open"):
        register(memory, link)


def test_a_pipe_instead_of_a_segment_does_not_hold_the_server_up(memory, make_segment):
    pipe = make_segment()
    pipe.unlink()
    os.mkfifo(pipe.path)

    with pytest.raises(InvalidArgumentError, match="memory segment"):
        register(memory, pipe)


def test_a_lease_on_a_segment_does_not_hold_the_server_up(memory, make_segment):
    segment = make_segment()
    before = signal.signal(
        signal.SIGIO, signal.SIG_IGN
    )  # which tells the holder of a lease that another wants the file
    descriptor = os.open(segment.path, os.O_RDONLY)

    try:
        fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_RDLCK)
        with pytest.raises(UnavailableError, match="Unable to open"):
            register(memory, segment)
    finally:
        os.close(descriptor)
        signal.signal(signal.SIGIO, before)


def test_a_folder_is_no_segment(memory, make_segment):
    folder = make_segment()
    folder.unlink()
    folder.path.mkdir()

    try:
        with pytest.raises(InvalidArgumentError, match="Unable to open"):
            register(memory, folder)
    finally:
        folder.path.rmdir()


@pytest.mark.parametrize(("offset", "byte_size"), [(0, 65), (1, 64), (64, 1), (0, 2**63), (2**63, 1), (0, LARGEST)])
def test_a_region_ends_within_its_segment(memory, make_segment, offset, byte_size):
    with pytest.raises(InvalidArgumentError, match="failed to register shared memory region 'r': invalid args"):
        register(memory, make_segment(), offset, byte_size)


@pytest.mark.parametrize(("offset", "byte_size"), [(0, 0), (-1, 8), (8, -1)])
def test_a_region_has_bytes(memory, make_segment, offset, byte_size):
    with pytest.raises(InvalidArgumentError, match="region 'r': invalid args"):
        register(memory, make_segment(), offset, byte_size)


@pytest.mark.parametrize(("offset", "byte_size"), [(LARGEST, 1), (1, LARGEST), (LARGEST, LARGEST)])
def test_an_offset_and_a_size_that_overflow_are_reported(memory, make_segment, offset, byte_size):
    with pytest.raises(InvalidArgumentError, match=rf"Integer overflow detected: byte_size \({byte_size}\)"):
        register(memory, make_segment(), offset, byte_size)


@pytest.mark.parametrize("use", ["check", "read", "write"])
@pytest.mark.parametrize(
    ("offset", "byte_size", "message"),
    [
        (32, 0, "Invalid offset for shared memory region: 'r'"),
        (LARGEST, 1, "Invalid offset for"),
        (-1, 1, "Invalid offset for"),
        (0, 33, "Invalid offset [+] byte size for shared memory region: 'r'"),
        (31, 2, "Invalid offset [+] byte size"),
        (0, -1, "Invalid offset [+] byte size"),
        (0, LARGEST, "Invalid offset [+] byte size"),
        (1, LARGEST, "Integer overflow detected"),
    ],
)
def test_a_use_lies_within_its_region_even_if_the_segment_is_longer(
    memory, make_segment, use, offset, byte_size, message
):
    region = register(memory, make_segment(), 0, 32)
    uses = {
        "check": lambda: region.check(offset, byte_size),
        "read": lambda: region.read(offset, byte_size),
        "write": lambda: region.write(offset, byte_size, b"x", "OUT"),
    }

    with pytest.raises(InvalidArgumentError, match=message):
        uses[use]()


def test_an_output_that_does_not_fit_is_not_written_at_all(memory, make_segment):
    segment = make_segment()
    region = register(memory, segment)

    message = (
        r"size specified with the request for output 'OUT' \(4 bytes\) should be at least 5 bytes to hold the results"
    )
    with pytest.raises(InvalidArgumentError, match=message):
        region.write(0, 4, b"abcde", "OUT")

    assert segment.content == bytes(range(64))


@pytest.mark.parametrize("size", [0, 10, 63])
def test_a_segment_that_shrank_is_an_error_and_does_not_grow_again(memory, make_segment, size):
    segment = make_segment()
    region = register(memory, segment)

    segment.resize(size)

    message = f"region 'r' is not all there any more: its segment '{segment.key}' has {size} bytes"
    with pytest.raises(InvalidArgumentError, match=message):
        region.read(0, 64)
    with pytest.raises(InvalidArgumentError, match=message):
        region.write(0, 64, bytes(64), "OUT")
    assert len(segment.content) == size


def test_what_is_left_of_a_segment_that_shrank_can_be_used(memory, make_segment):
    segment = make_segment()
    region = register(memory, segment)

    segment.resize(10)
    region.write(8, 2, b"\1\1", "OUT")

    assert region.read(7, 3).tolist() == [7, 1, 1]


def test_a_segment_that_is_unlinked_lives_on_for_its_region(memory, make_segment):
    segment = make_segment()
    region = register(memory, segment)

    segment.unlink()
    region.write(0, 1, b"\7", "OUT")

    assert region.read(0, 2).tolist() == [7, 1]
    with pytest.raises(NotFoundError):
        memory.register_system("again", segment.key, 0, 8)


def test_a_segment_that_another_may_write_to_as_it_likes_never_stops_the_server(memory, make_segment):
    segment = make_segment(bytes(1 << 20))
    region = register(memory, segment, 0, 1 << 20)
    stop = threading.Event()

    def torment() -> None:
        while not stop.is_set():
            segment.resize(4096)
            segment.resize(1 << 20)

    thread = threading.Thread(target=torment)
    thread.start()
    outcomes = set()
    try:
        for _ in range(200):
            for use in (lambda: region.read(0, 1 << 20), lambda: region.write(0, 1 << 20, bytes(1 << 20), "OUT")):
                try:
                    use()
                    outcomes.add("done")
                except InvalidArgumentError:
                    outcomes.add("refused")
    finally:
        stop.set()
        thread.join()

    assert outcomes <= {"done", "refused"}
    assert segment.path.stat().st_size <= 1 << 20


def test_memory_that_the_server_has_not_got_is_an_error(memory, make_segment):
    segment = make_segment()
    segment.resize(1 << 60)
    region = register(memory, segment, 0, 1 << 60)

    with pytest.raises(UnavailableError, match="the server has no memory for a copy"):
        region.read(0, 1 << 60)


def test_more_of_a_hollow_segment_than_there_is_memory_is_not_copied(memory, make_segment, monkeypatch):
    segment = make_segment()
    segment.resize(1 << 28)
    region = register(memory, segment, 0, 1 << 28)
    monkeypatch.setattr("naiad_shared_memory.extents.free_bytes", lambda: 1 << 27)

    with pytest.raises(UnavailableError, match=r"a copy of 268435456 bytes of .* 134217728 are left"):
        region.read(0, 1 << 28)

    assert len(region.read(0, 1 << 20)) == 1 << 20


def test_as_much_of_a_segment_as_there_is_memory_is_copied(memory, make_segment, monkeypatch):
    segment = make_segment()
    segment.resize(1 << 26)
    region = register(memory, segment, 0, 1 << 26)
    monkeypatch.setattr("naiad_shared_memory.extents.free_bytes", lambda: 1 << 26)

    assert len(region.read(0, 1 << 26)) == 1 << 26


def test_a_copy_that_the_allocator_refuses_is_an_error(memory, make_segment, monkeypatch):
    segment = make_segment()
    segment.resize(1 << 60)
    region = register(memory, segment, 0, 1 << 60)
    monkeypatch.setattr("naiad_shared_memory.extents.free_bytes", lambda: None)

    with pytest.raises(UnavailableError, match="no memory for a copy of 1152921504606846976 bytes"):
        region.read(0, 1 << 60)


@pytest.mark.parametrize(
    ("byte_size", "free", "expected"),
    [(1 << 28, 1 << 27, False), (1 << 28, 1 << 28, True), (1 << 28, None, True), (1 << 20, 0, True)],
)
def test_memory_for_what_a_model_keeps_is_left_when_the_system_has_as_much(monkeypatch, byte_size, free, expected):
    monkeypatch.setattr("naiad_shared_memory.extents.free_bytes", lambda: free)

    assert is_left(byte_size) is expected


def test_a_server_without_a_free_descriptor_says_so(memory, make_segment, monkeypatch):
    segment = make_segment()

    def none_left(*_):
        raise OSError(24, "Too many open files")

    monkeypatch.setattr("naiad_shared_memory.segments.os.open", none_left)

    with pytest.raises(UnavailableError, match="Too many open files"):
        register(memory, segment)


def test_a_device_that_is_full_is_an_error(memory, make_segment, monkeypatch):
    region = register(memory, make_segment())

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("naiad_shared_memory.segments.os.pwrite", full)

    with pytest.raises(UnavailableError, match="failed to write shared memory region 'r': No space left"):
        region.write(0, 1, b"x", "OUT")


def test_memory_that_cannot_be_read_is_an_error(memory, make_segment, monkeypatch):
    region = register(memory, make_segment())

    def broken(*_):
        raise OSError(5, "Input/output error")

    monkeypatch.setattr("naiad_shared_memory.segments.os.preadv", broken)

    with pytest.raises(UnavailableError, match="failed to read shared memory region 'r': Input/output error"):
        region.read(0, 1)


def test_a_large_output_is_written_although_the_segment_cannot_be_mapped(memory, make_segment, monkeypatch):
    segment = make_segment(bytes(LARGE))
    region = register(memory, segment, 0, LARGE)
    monkeypatch.setattr("naiad_shared_memory.segments.mapped", lambda *_: None)

    region.write(0, LARGE, b"\1" * LARGE, "OUT")

    assert segment.content == b"\1" * LARGE


def test_reads_and_writes_that_the_system_cuts_short_go_on(memory, make_segment, monkeypatch):
    segment = make_segment()
    region = register(memory, segment)
    preadv, pwrite = os.preadv, os.pwrite
    monkeypatch.setattr("naiad_shared_memory.segments.os.preadv", lambda fd, views, at: preadv(fd, [views[0][:7]], at))
    monkeypatch.setattr("naiad_shared_memory.segments.os.pwrite", lambda fd, view, at: pwrite(fd, view[:7], at))

    array = region.read(0, 64)
    region.write(0, 64, bytes(reversed(array[:40].tolist())) + bytes(array[40:]), "OUT")

    assert array.tolist() == list(range(64))
    assert segment.content == bytes(reversed(range(40))) + bytes(range(40, 64))


def test_one_region_that_cannot_be_opened_leaves_the_others_alone(memory, make_segment):
    register(memory, make_segment())

    with pytest.raises(NotFoundError):
        memory.register_system("s", "/naiad_test_nowhere", 0, 8)

    assert [region.name for region in memory.status("system")] == ["r"]
