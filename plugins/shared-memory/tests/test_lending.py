"""Memory of clients that models are lent: for a model it is a copy of its own, whatever it and the client do."""

import os
import subprocess
import sys
import textwrap
import threading
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from naiad_shared_memory.guard import GUARD, load_guard
from naiad_shared_memory.regions import SharedMemory
from naiad_shared_memory.segments import SegmentMemory

SIZE = 1 << 20
PAGE = os.sysconf("SC_PAGESIZE")

pytestmark = pytest.mark.skipif(GUARD is None, reason="built without a C compiler")


@pytest.fixture
def segment(make_segment):
    return make_segment(b"\1" * SIZE)


@pytest.fixture
def memory():
    return SharedMemory(allowed=True, lends=True)


@pytest.fixture
def region(memory, segment):
    memory.register_system("r", segment.key, 0, SIZE)
    return memory.region("r")


def array_of(loan):
    return np.ndarray((len(loan.array) // 4,), np.uint32, loan.array).view(np.uint8)


def overwrite(segment, value):
    """What a client does: in place, for the segment is mapped."""
    with segment.path.open("r+b") as file:
        file.write(bytes([value]) * SIZE)


def test_what_is_lent_is_the_memory_of_the_client(region, segment):
    loan = region.lend(0, SIZE)

    assert array_of(loan).sum() == SIZE
    overwrite(segment, 2)
    assert array_of(loan).sum() == 2 * SIZE
    assert loan.end()


def test_a_part_is_lent_from_its_offset_on(memory, make_segment):
    content = np.arange(SIZE, dtype=np.uint32).astype(np.uint8)
    memory.register_system("r", make_segment(content.tobytes()).key, 64, SIZE - 64)

    loan = memory.region("r").lend(128, 1000)

    assert np.array_equal(array_of(loan), content[192:1192])
    assert loan.end()


def test_what_a_model_writes_stays_its_own(region, segment):
    loan = region.lend(0, SIZE)
    array_of(loan)[SIZE - 1] = 9

    assert not loan.end()

    assert set(segment.content) == {1}
    assert set(array_of(region.lend(0, SIZE))) == {1}


def written_by_a_thread(array):
    thread = threading.Thread(target=lambda: array.fill(9))
    thread.start()
    thread.join()


def written_by_the_system(array):
    with Path("/dev/zero").open("rb", buffering=0) as file:
        file.readinto(array)


def written_by_a_child_of_a_fork(array):
    child = os.fork()
    if not child:
        array.fill(9)
        os._exit(0)
    os.waitpid(child, 0)


@pytest.mark.parametrize("write", [written_by_a_thread, written_by_the_system])
def test_it_does_not_matter_who_writes(region, segment, write):
    loan = region.lend(PAGE, PAGE)
    write(array_of(loan))

    assert not loan.end()
    assert set(segment.content) == {1}


def test_what_a_fork_writes_is_its_own(region, segment):
    loan = region.lend(0, SIZE)
    written_by_a_child_of_a_fork(array_of(loan))

    assert set(array_of(loan)) == {1}
    assert loan.end()
    assert set(segment.content) == {1}


def test_what_a_model_keeps_does_not_change_when_the_client_goes_on(region, segment):
    loan = region.lend(0, SIZE)
    kept = array_of(loan)[10:20]

    assert not loan.end()

    overwrite(segment, 3)
    segment.resize(0)
    assert kept.tolist() == [1] * 10
    kept[:] = 4
    assert kept.tolist() == [4] * 10


def test_what_is_kept_while_there_is_no_memory_for_a_copy_can_still_be_read(region, segment, monkeypatch):
    monkeypatch.setattr("naiad_shared_memory.mapping.is_left", lambda size: False)
    kept_mappings = []
    monkeypatch.setattr("naiad_shared_memory.mapping._MAPPED_FOR_EVER", kept_mappings)
    loan = region.lend(0, SIZE)
    kept = array_of(loan)

    assert not loan.end()
    del loan
    segment.resize(0)

    assert not kept.any()
    assert len(kept_mappings) == 1


def test_the_next_loan_after_one_that_was_kept_sees_the_client(region, segment):
    loan = region.lend(0, SIZE)
    kept = array_of(loan)
    loan.end()
    overwrite(segment, 3)

    again = region.lend(0, SIZE)

    assert (set(array_of(again)), set(kept)) == ({3}, {1})
    assert again.end()


def test_a_segment_that_shrinks_meanwhile_reads_as_zeros_and_is_reported(region, segment):
    loan = region.lend(0, SIZE)
    segment.resize(PAGE)

    assert array_of(loan).sum() == PAGE

    assert not loan.end()
    assert loan.is_torn
    assert f"segment '{segment.key}' has {PAGE} bytes now" in str(region.shrunk())
    assert region.lend(0, SIZE) is None


def test_a_segment_that_grows_again_is_lent_again(region, segment):
    loan = region.lend(0, SIZE)
    segment.resize(0)
    array_of(loan).sum()
    loan.end()
    segment.path.write_bytes(b"\5" * SIZE)

    again = region.lend(0, SIZE)

    assert set(array_of(again)) == {5}
    assert again.end()


def test_pages_are_lent_once_at_a_time(region):
    first, second = region.lend(0, PAGE), region.lend(2 * PAGE, PAGE)

    assert region.lend(PAGE - 64, 128) is None
    array_of(first)[0] = 9
    assert not first.end()
    assert second.end()
    assert region.lend(0, PAGE).end()


def test_what_is_not_aligned_is_not_lent(region):
    assert region.lend(4, PAGE) is None


def test_the_alignment_is_that_of_the_address(memory, make_segment):
    memory.register_system("r", make_segment(b"\1" * SIZE).key, 16, SIZE - 16)
    region = memory.region("r")

    assert region.lend(16, PAGE) is None
    assert region.lend(48, PAGE).end()


def test_a_hollow_segment_is_not_lent_for_that_would_fill_it(memory, make_segment):
    segment = make_segment()
    segment.resize(SIZE)
    memory.register_system("r", segment.key, 0, SIZE)

    assert memory.region("r").lend(0, SIZE) is None
    assert segment.path.stat().st_blocks * 512 < SIZE


def test_without_a_guard_nothing_is_lent_and_all_is_copied(segment, tmp_path):
    region = SegmentMemory("r", segment.key, os.open(segment.path, os.O_RDWR), 0, SIZE, guard=None)

    assert region.lend(0, SIZE) is None
    region.write(0, SIZE, b"\2" * SIZE, "OUT")
    assert set(region.read(0, SIZE)) == {2}


def test_a_guard_that_was_not_built_is_none(monkeypatch, tmp_path):
    monkeypatch.setattr("naiad_shared_memory.guard._LIBRARY", tmp_path / "nowhere.so")

    assert load_guard() is None


@pytest.mark.parametrize(("installed", "span"), [(1, -1), (0, 0)])
def test_memory_that_cannot_be_guarded_is_not_mapped(segment, monkeypatch, installed, span):
    guard = load_guard()
    full = SimpleNamespace(naiad_guard_install=lambda: installed, naiad_guard_cover=lambda address, byte_size: span)
    monkeypatch.setattr(guard, "_library", full)
    region = SegmentMemory("r", segment.key, os.open(segment.path, os.O_RDWR), 0, SIZE, guard=guard)

    assert guard.cover(0, PAGE) is None
    assert region.lend(0, SIZE) is None
    region.write(0, SIZE, b"\2" * SIZE, "OUT")
    assert set(region.read(0, SIZE)) == {2}


def test_without_a_page_map_there_is_no_guard(monkeypatch):
    def refuse(path, flags):
        raise PermissionError(f"{path} is not for everybody")

    monkeypatch.setattr("naiad_shared_memory.guard.os.open", refuse)

    assert load_guard() is None


def test_pages_count_as_written_where_the_page_map_cannot_be_read(segment):
    guard = load_guard()
    region = SegmentMemory("r", segment.key, os.open(segment.path, os.O_RDWR), 0, SIZE, guard=guard)
    with Path("/dev/null").open() as empty:
        os.dup2(empty.fileno(), guard._pagemap)
    loan = region.lend(0, SIZE)
    loan.array.sum()

    assert not loan.end()


def test_a_client_that_shrinks_its_segment_all_the_time_never_stops_the_server(region, segment):
    stop = threading.Event()

    def torment() -> None:
        while not stop.is_set():
            segment.resize(PAGE)
            segment.path.write_bytes(b"\1" * SIZE)

    thread = threading.Thread(target=torment)
    thread.start()
    lent = 0
    try:
        while lent < 300:
            loan = region.lend(0, SIZE)
            if loan is not None:
                lent += 1
                content = array_of(loan).copy()
                loan.end()
                assert content.max() <= 1  # the client's ones, or zeros
    finally:
        stop.set()
        thread.join()


def run(code):
    return subprocess.run(
        [sys.executable, "-X", "faulthandler", "-c", textwrap.dedent(code)], capture_output=True, text=True, timeout=60
    )


PRELUDE = """
    import ctypes, mmap, os, signal, tempfile
    from naiad_shared_memory.guard import GUARD
    from naiad_shared_memory.mapping import mapped
    file = tempfile.TemporaryFile(dir="/dev/shm")
    file.write(bytes(8192)); file.flush()
    mapping = mapped(GUARD, file.fileno(), 0, 8192, mmap.MAP_SHARED)
"""


def test_another_bus_error_ends_the_process_as_ever_and_tells_where(tmp_path):
    done = run(
        PRELUDE
        + """
    other = mmap.mmap(file.fileno(), 8192)
    file.truncate(0)
    print(mapping.view[0], mapping.is_torn, flush=True)
    other[0]
    """
    )

    assert done.returncode == -7
    assert done.stdout == "0 True\n"
    assert "Fatal Python error: Bus error" in done.stderr


def test_a_signal_that_somebody_sends_ends_the_process_as_ever():
    done = run(PRELUDE + "    os.kill(os.getpid(), signal.SIGBUS)\n")

    assert done.returncode == -7


def test_a_handler_that_was_put_in_front_is_overtaken_at_the_next_mapping():
    done = run(
        PRELUDE
        + """
    import faulthandler
    faulthandler.disable(); signal.signal(signal.SIGBUS, signal.SIG_DFL)
    again = mapped(GUARD, file.fileno(), 0, 8192, mmap.MAP_SHARED)
    file.truncate(0)
    print(again.view[0], again.is_torn)
    """
    )

    assert (done.returncode, done.stdout) == (0, "0 True\n"), done.stderr


def test_a_thread_whose_stack_for_signals_is_of_no_use_goes_on():
    done = run(
        PRELUDE
        + """
    class Stack(ctypes.Structure):
        _fields_ = [("begin", ctypes.c_void_p), ("flags", ctypes.c_int), ("size", ctypes.c_size_t)]

    libc = ctypes.CDLL(None)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
    begin = libc.mmap(None, 65536, mmap.PROT_READ, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, -1, 0)
    assert libc.sigaltstack(ctypes.byref(Stack(begin, 0, 65536)), None) == 0
    file.truncate(0)
    print(mapping.view[0], mapping.is_torn)
    """
    )

    assert (done.returncode, done.stdout) == (0, "0 True\n"), done.stderr
