"""Memory cgroups: groups on a tree like that of cgroup v2, and real ones where this process may create them."""

import errno
import os
from pathlib import Path

import numpy as np
import pytest

from naiad.errors import NaiadError, WorkerDiedError
from naiad_process_workers import memory_groups as module
from naiad_process_workers.memory_groups import memory_groups

from .conftest import Serve, Write

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


@pytest.mark.parametrize(("others", "is_possible"), [([os.getppid()], True), ([os.getppid(), 99999999], False)])
def test_the_processes_of_a_group_move_below_it_with_the_server_if_it_descends_from_them(
    tmp_path: Path, membership: Path, monkeypatch: pytest.MonkeyPatch, others: list[int], is_possible: bool
) -> None:
    processes = [os.getpid(), *others]
    own = group_at(tmp_path / "tree" / "service" / "server", enabled="", processes="\n".join(map(str, processes)))
    moved = []

    def write(path: Path, text: str) -> None:
        if path == own / "naiad" / "cgroup.procs":
            moved.append(int(text))
        elif path.name == "cgroup.subtree_control" and len(moved) < len(processes):
            raise OSError(errno.EBUSY, "the group has processes")
        else:
            path.write_text(text)

    monkeypatch.setattr(module, "_write", write)

    assert (memory_groups(tmp_path / "tree", membership, is_root=False) is not None) == is_possible
    assert moved == (processes if is_possible else [])


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
