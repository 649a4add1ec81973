"""The C library's allocator: bounded at the start of a server, and its free pages are given back."""

import ctypes
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from naiad_cli.allocator import bound_allocator

MIB = 2**20
SIZES, ARENAS = [(-3, 8 * MIB), (-1, 16 * MIB)], [(-8, 8)]
SCRIPT = Path(__file__).with_name("allocating_threads.py")


class Library:
    """The C library, whose `mallopt` keeps what it is called with."""

    def __init__(self) -> None:
        self.options: list[tuple[int, int]] = []

    def mallopt(self, option: int, value: int) -> int:
        self.options.append((option, value))
        return 1


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("PATH_OF_NOBODY", SIZES + ARENAS),
        ("MALLOC_TRIM_THRESHOLD_", ARENAS),
        ("MALLOC_MMAP_THRESHOLD_", ARENAS),
        ("MALLOC_ARENA_MAX", SIZES),
        ("MALLOC_ARENA_TEST", SIZES),
        ("GLIBC_TUNABLES", []),
    ],
)
def test_the_allocator_is_bounded_where_the_user_has_not_set_it_up(
    monkeypatch: pytest.MonkeyPatch, name: str, options: list[tuple[int, int]]
) -> None:
    library = Library()
    monkeypatch.setattr(ctypes, "CDLL", lambda _: library)
    monkeypatch.setattr("naiad_cli.allocator.os.environ", {name: "1"})

    bound_allocator()

    assert library.options == options


def test_an_allocator_without_options_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ctypes, "CDLL", lambda _: object())

    bound_allocator()


def allocate_in_threads(**environment: str) -> dict[str, float]:
    """Resident MiB of a process after its threads have freed 15 MiB each, after their pages were given back, and then
    after one more thread has freed 15 MiB.
    """
    if not hasattr(ctypes.CDLL(None), "malloc_trim"):
        pytest.skip("the C library is not glibc")
    others = {name: value for name, value in os.environ.items() if not name.startswith(("MALLOC_", "GLIBC_"))}
    answer = subprocess.run(
        [sys.executable, str(SCRIPT)], env={**others, **environment}, capture_output=True, check=True, timeout=120
    )
    result: dict[str, float] = json.loads(answer.stdout)
    return result


def test_the_free_ends_of_all_arenas_are_given_back_and_later_ones_are_kept() -> None:
    resident = allocate_in_threads()

    assert resident["freed"] > resident["start"] + 60
    assert resident["given back"] < resident["start"] + 10
    assert resident["freed again"] > resident["given back"] + 10


def test_free_ends_stay_where_the_user_has_set_their_size() -> None:
    resident = allocate_in_threads(MALLOC_TRIM_THRESHOLD_="268435456", MALLOC_MMAP_THRESHOLD_="8388608")

    assert resident["given back"] > resident["start"] + 60
