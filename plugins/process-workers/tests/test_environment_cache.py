"""The cache of environments: one build at a time, and nothing half-built is used."""

import fcntl
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from naiad_process_workers.environment_cache import cached_environment

LEAVES_A_CHILD = """
import os, subprocess, sys
from naiad_process_workers.environment_cache import cached_environment

def build(folder, lock):
    folder.mkdir()
    child = subprocess.Popen(["cat"], stdin=0, stdout=subprocess.DEVNULL, pass_fds=(lock,))
    print(child.pid, flush=True)
    os._exit(1)

cached_environment("key", build)
"""


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "naiad"


def make(folder: Path, lock: int) -> None:
    folder.mkdir()
    (folder / "content").write_text("whole")


def test_a_folder_is_built_once_however_many_want_it_at_once() -> None:
    builds: list[Path] = []
    both = threading.Barrier(2)

    def build(folder: Path, lock: int) -> None:
        builds.append(folder)
        make(folder, lock)

    def want(_: int) -> Path:
        both.wait()
        return cached_environment("key", build)

    with ThreadPoolExecutor(2) as pool:
        folders = list(pool.map(want, range(2)))

    assert len(builds) == 1
    assert folders == [builds[0], builds[0]]
    assert (folders[0] / "content").read_text() == "whole"


def test_other_keys_have_other_folders() -> None:
    assert cached_environment("one", make) != cached_environment("two", make)


def test_a_build_that_fails_leaves_nothing_and_is_done_again(cache: Path) -> None:
    def fail(folder: Path, lock: int) -> None:
        make(folder, lock)
        raise ValueError("half-way")

    with pytest.raises(ValueError, match="half-way"):
        cached_environment("key", fail)
    assert list((cache / "environments").iterdir()) == []

    assert (cached_environment("key", make) / "content").is_file()


def test_a_folder_whose_build_was_cut_off_is_built_anew(cache: Path) -> None:
    folder = cached_environment("key", make)
    (folder / ".naiad-complete").unlink()
    (folder / "leftover").write_text("half")

    assert cached_environment("key", make) == folder
    assert not (folder / "leftover").exists()


def test_the_lock_is_held_while_a_program_of_a_build_that_has_died_still_runs(cache: Path) -> None:
    command = [sys.executable, "-c", LEAVES_A_CHILD]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as builder:
        assert builder.stdin is not None
        assert builder.stdout is not None
        child = int(builder.stdout.readline())
        assert builder.wait() == 1
        (lock,) = (cache / "locks").iterdir()
        with lock.open() as file:
            with pytest.raises(BlockingIOError):
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            assert Path(f"/proc/{child}").exists()

            builder.stdin.close()
            fcntl.flock(file, fcntl.LOCK_EX)

    assert (cached_environment("key", make) / "content").is_file()
