"""Memory cgroups: groups on a tree like that of cgroup v2, and real ones where this process may create them."""

import errno
import os
import signal
import subprocess
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from naiad.errors import NaiadError, WorkerDiedError
from naiad_process_workers import memory_groups as module
from naiad_process_workers.memory_groups import memory_groups

from .conftest import Serve, Write, until

ONE = np.ones(4, np.float32)


def group_at(path: Path, controllers: str = "cpu memory", enabled: str = "memory", processes: str = "") -> Path:
    """A group with the files that the system makes."""
    path.mkdir(parents=True, exist_ok=True)
    for name, text in (("controllers", controllers), ("subtree_control", enabled), ("procs", processes)):
        (path / f"cgroup.{name}").write_text(text)
    return path


@pytest.fixture
def membership(tmp_path: Path) -> Path:
    """What names the group /service/server."""
    path = tmp_path / "membership"
    path.write_text("3:cpu:/old\n0::/service/server\n")
    return path


def test_a_limit_is_a_group_beside_that_of_the_server(tmp_path: Path, membership: Path) -> None:
    service = group_at(tmp_path / "tree" / "service")
    group_at(service / "server", controllers="cpu")

    groups = memory_groups(tmp_path / "tree", membership, is_root=False)
    assert groups is not None
    group = groups.create(123 << 20)
    assert group is not None
    group.add(4711)
    (path,) = service.glob("naiad-*")

    assert (path / "memory.max").read_text() == str(123 << 20)
    assert (path / "cgroup.procs").read_text() == "4711"
    assert not group.has_killed
    (path / "memory.events").write_text("low 0\nmax 7\noom 1\noom_kill 1\n")
    assert group.has_killed


def test_memory_is_limited_below_the_own_group_first(tmp_path: Path, membership: Path) -> None:
    group_at(tmp_path / "tree" / "service")
    own = group_at(tmp_path / "tree" / "service" / "server", enabled="cpu", processes=str(os.getpid()))

    groups = memory_groups(tmp_path / "tree", membership, is_root=False)
    assert groups is not None
    groups.create(1 << 20)

    assert (own / "cgroup.subtree_control").read_text() == "+memory"
    assert len(list(own.glob("naiad-*"))) == 1


@pytest.mark.parametrize("is_root", [True, False])
@pytest.mark.parametrize("controllers", ["cpu", "cpu memory"])
def test_a_group_that_is_not_delegated_stays_as_it_is(
    tmp_path: Path, membership: Path, is_root: bool, controllers: str
) -> None:
    own = group_at(tmp_path / "tree" / "service" / "server", controllers=controllers)

    groups = memory_groups(tmp_path / "tree", membership, is_root)

    assert (groups is not None) == (controllers == "cpu memory" and not is_root)  # root may write to any
    assert sorted(each.name for each in own.iterdir()) == [
        "cgroup.controllers",
        "cgroup.procs",
        "cgroup.subtree_control",
    ]


class GroupWithProcesses:
    """Writes as the system takes them: processes move to the group below, and limits need a group without any.

    `starts` are processes that come when the others have moved; `ended` can no longer move.
    """

    def __init__(self, own: Path, processes: Sequence[int], starts: Sequence[int] = (), ended: int = 0) -> None:
        self.moved: list[int] = []
        self._own, self._inside, self._starts, self._ended = own, list(processes), list(starts), ended
        self._show()

    def write(self, path: Path, text: str) -> None:
        if path == self._own / "naiad" / "cgroup.procs":
            self._inside.remove(int(text))
            if int(text) == self._ended:
                raise ProcessLookupError
            self.moved.append(int(text))
            if not self._inside:
                self._inside, self._starts = self._starts, []
            self._show()
        elif path.name == "cgroup.subtree_control" and self._inside:
            raise OSError(errno.EBUSY, "the group has processes")
        else:
            path.write_text(text)

    def _show(self) -> None:
        (self._own / "cgroup.procs").write_text("\n".join(map(str, self._inside)))


@pytest.fixture
def own_group(tmp_path: Path) -> Path:
    """The group of the server, which limits no memory yet."""
    return group_at(tmp_path / "tree" / "service" / "server", enabled="")


@pytest.fixture
def child() -> Iterator[int]:
    """A process that this one has started."""
    with subprocess.Popen(["sleep", "60"]) as process:
        yield process.pid
        process.kill()


@pytest.fixture
def stranger() -> Iterator[int]:
    """A process that neither descends from this one nor the other way round."""
    output = subprocess.run(["sh", "-c", "sleep 60 >&- & echo $!"], stdout=subprocess.PIPE, check=True).stdout
    yield int(output)
    os.kill(int(output), signal.SIGKILL)


def test_the_processes_of_a_group_move_below_it_with_the_server_if_it_descends_from_them_or_they_from_it(
    tmp_path: Path, membership: Path, own_group: Path, child: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    processes = [os.getppid(), os.getpid(), child]
    group = GroupWithProcesses(own_group, processes)
    monkeypatch.setattr(module, "_write", group.write)

    assert memory_groups(tmp_path / "tree", membership, is_root=False) is not None
    assert group.moved == processes


def test_a_group_with_the_process_of_another_service_stays_as_it_is(
    tmp_path: Path, membership: Path, own_group: Path, stranger: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    group = GroupWithProcesses(own_group, [os.getpid(), stranger])
    monkeypatch.setattr(module, "_write", group.write)

    assert memory_groups(tmp_path / "tree", membership, is_root=False) is None
    assert group.moved == []


def test_a_process_that_starts_while_the_others_move_is_moved_too(
    tmp_path: Path, membership: Path, own_group: Path, child: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    group = GroupWithProcesses(own_group, [os.getpid()], starts=[child])
    monkeypatch.setattr(module, "_write", group.write)

    assert memory_groups(tmp_path / "tree", membership, is_root=False) is not None
    assert group.moved == [os.getpid(), child]


def test_a_process_that_ends_before_it_moves_is_passed_over(
    tmp_path: Path, membership: Path, own_group: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended = 99999999
    group = GroupWithProcesses(own_group, [ended, os.getpid()], ended=ended)
    monkeypatch.setattr(module, "_write", group.write)

    assert memory_groups(tmp_path / "tree", membership, is_root=False) is not None
    assert group.moved == [os.getpid()]


def test_a_group_that_was_left_behind_under_the_own_process_id_is_passed_over(tmp_path: Path, membership: Path) -> None:
    own = group_at(tmp_path / "tree" / "service" / "server")
    groups = memory_groups(tmp_path / "tree", membership, is_root=False)
    assert groups is not None
    group = groups.create(1 << 20)
    (path,) = own.glob("naiad-*")
    prefix, _, number = path.name.rpartition("-")
    (own / f"{prefix}-{int(number) + 1}").mkdir()

    assert group is not None
    assert groups.create(1 << 20) is not None


def test_without_cgroups_of_the_second_version_there_are_none(tmp_path: Path, membership: Path) -> None:
    assert memory_groups(tmp_path / "nothing", membership, is_root=False) is None
    membership.write_text("4:memory:/old\n")
    assert memory_groups(tmp_path / "tree", membership, is_root=False) is None


def test_groups_of_a_server_that_was_killed_go_with_the_next_one(tmp_path: Path, membership: Path) -> None:
    own = group_at(tmp_path / "tree" / "service" / "server")
    old, living = own / "naiad-99999999-1", own / f"naiad-{os.getpid()}-1"
    old.mkdir()
    living.mkdir()

    memory_groups(tmp_path / "tree", membership, is_root=False)

    assert not old.exists()
    assert living.exists()


class KillingGroup:
    """A group in which the system kills what uses too much memory."""

    def __init__(self, processes: list[int]) -> None:
        self._processes = processes
        self.has_killed = False

    def add(self, process: int) -> None:
        self._processes.append(process)

    def close(self) -> None:
        self._processes.clear()


class KillingGroups:
    """Makes such groups; `kill` is what the system does."""

    def __init__(self) -> None:
        self.limits: list[int] = []
        self.processes: list[int] = []
        self._groups: list[KillingGroup] = []

    def create(self, limit: int) -> KillingGroup:
        self.limits.append(limit)
        self._groups.append(KillingGroup(self.processes))
        return self._groups[-1]

    def kill(self) -> None:
        self._groups[-1].has_killed = True
        os.kill(self.processes[-1], signal.SIGKILL)


def test_a_process_that_its_group_has_killed_is_said_to_have_used_too_much_memory(
    write: Write, served: Serve, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    groups, begun = KillingGroups(), tmp_path / "begun"
    monkeypatch.setattr("naiad_process_workers.kind.memory_groups", lambda: groups)
    model = write("m", body=f"if x[0] == 7: open('{begun}', 'w').close(); time.sleep(1000)", memory_limit="300M")

    with served(model) as client, ThreadPoolExecutor(1) as threads:
        answer = threads.submit(client.infer, X=ONE * 7)
        until(begun.exists)
        groups.kill()

        with pytest.raises(WorkerDiedError, match="used more memory than its memory_limit of 314572800 bytes"):
            answer.result()

    assert set(groups.limits) == {300 << 20}
    assert groups.processes == []


@pytest.fixture
def real_groups() -> Path:
    """The folder of this process's group, where it may create groups."""
    if memory_groups() is None:
        pytest.skip("no cgroup is delegated to this process")
    return Path("/sys/fs/cgroup")


def test_a_process_that_uses_more_memory_than_its_group_may_is_killed_and_replaced(
    real_groups: Path, write: Write, served: Serve
) -> None:
    model = write("m", body="if x[0] == 7: np.ones(1 << 30, np.uint8)", memory_limit="300M")

    with served(model) as client:
        with pytest.raises(WorkerDiedError, match="used more memory than its memory_limit of 314572800 bytes"):
            client.infer(X=ONE * 7)
        while True:
            try:
                assert client.infer(X=ONE)["Y"].tolist() == [2] * 4
                break
            except NaiadError:
                continue
        assert list(real_groups.rglob("naiad-*"))

    assert not list(real_groups.rglob("naiad-*"))
