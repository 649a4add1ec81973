"""Memory cgroups: a group of cgroup v2 for each process with a memory limit, where the server may create groups.

A limit of a group counts the memory that a process and its children use, not the addresses that they reserve. The
server may create groups below one that is delegated to it (docs.kernel.org/admin-guide/cgroup-v2.html, "Delegation"):
its own or the one above, which its user may write to. For root, who may write to all of them, that is a group that
systemd marks as delegated, or the topmost that the server sees, as in a container.
"""

import os
import time
from collections.abc import Iterator
from contextlib import suppress
from itertools import count
from pathlib import Path

_MOUNT = Path("/sys/fs/cgroup")
_MEMBERSHIP = Path("/proc/self/cgroup")
_PREFIX = "naiad-"
_LEAF = "naiad"
"""The group that the server itself moves to."""

_SECONDS_TO_EMPTY = 2.0
_ATTEMPTS = 20
_numbers = count(1)


class MemoryGroup:
    """The group of one process; `limit` is its bytes of memory."""

    def __init__(self, path: Path, limit: int) -> None:
        self.limit = limit
        self._path = path

    def add(self, process: int) -> None:
        """Count the memory of a process from now on, and of the children that it starts."""
        _write(self._path / "cgroup.procs", str(process))

    @property
    def has_killed(self) -> bool:
        """Whether the system has killed a process because the memory was used up."""
        with suppress(OSError):
            events = dict(line.split() for line in _read(self._path / "memory.events").splitlines())
            return int(events.get("oom_kill", 0)) > 0
        return False

    def close(self) -> None:
        """Kill what processes of the group are left, and remove it."""
        with suppress(OSError):
            _write(self._path / "cgroup.kill", "1")
        until = time.monotonic() + _SECONDS_TO_EMPTY
        while time.monotonic() < until:
            try:
                self._path.rmdir()
            except FileNotFoundError:
                return
            except OSError:  # a process that was killed has not ended yet; nothing says when
                time.sleep(0.005)


class MemoryGroups:
    """Creates groups below one that is delegated."""

    def __init__(self, base: Path) -> None:
        self._base = base

    def create(self, limit: int) -> MemoryGroup | None:
        """A group with so many bytes of memory, None if that is not possible."""
        path = self._path()
        while path.exists():  # of a server that was killed and had the id of this process
            path = self._path()
        try:
            path.mkdir()
            _write(path / "memory.max", str(limit))
        except OSError:
            with suppress(OSError):
                path.rmdir()
            return None
        for name, value in (("memory.swap.max", "0"), ("memory.oom.group", "1")):
            with suppress(OSError):  # no swap, or an old kernel
                _write(path / name, value)
        return MemoryGroup(path, limit)

    def _path(self) -> Path:
        return self._base / f"{_PREFIX}{os.getpid()}-{next(_numbers)}"


def memory_groups(
    mount: Path = _MOUNT, membership: Path = _MEMBERSHIP, is_root: bool | None = None
) -> MemoryGroups | None:
    """Groups below one that is delegated to this process, None if there is none.

    `membership` names the group of this process; `is_root` says whether it may write to all groups.
    """
    is_root = os.geteuid() == 0 if is_root is None else is_root
    try:
        (path,) = [line[3:] for line in _read(membership).splitlines() if line.startswith("0::")]
        group = Path(os.path.normpath(f"{mount}/{path}"))
        for base in (group, group.parent):
            if base.is_relative_to(mount) and _is_delegated(base, mount, is_root) and _enable(base):
                _remove_old(base)
                return MemoryGroups(base)
    except (OSError, ValueError):
        return None
    return None


def _is_delegated(group: Path, mount: Path, is_root: bool) -> bool:
    if "memory" not in _read(group / "cgroup.controllers").split():
        return False
    if not all(os.access(each, os.W_OK) for each in (group, group / "cgroup.procs", group / "cgroup.subtree_control")):
        return False
    return not is_root or group == mount or any(_has_mark(group, f"{kind}.delegate") for kind in ("trusted", "user"))


def _has_mark(group: Path, name: str) -> bool:
    try:
        return os.getxattr(group, name) == b"1"
    except OSError:
        return False


def _enable(base: Path) -> bool:
    """Let groups below this one limit memory.

    A group whose children have limits may have no processes. Those in it move to a group below if each is this server's
    own or a descendant, or one that it descends from, such as its supervisor or the init of a container.
    """
    control = base / "cgroup.subtree_control"
    if "memory" in _read(control).split():
        return True
    for _ in range(_ATTEMPTS):  # other models start processes meanwhile, and processes end
        with suppress(OSError):
            _write(control, "+memory")
            return True
        processes = [int(each) for each in _read(base / "cgroup.procs").split()]
        if not all(map(_is_own, processes)):
            return False
        leaf = base / _LEAF
        leaf.mkdir(exist_ok=True)
        for process in processes:
            with suppress(ProcessLookupError):
                _write(leaf / "cgroup.procs", str(process))
    return False


def _is_own(process: int) -> bool:
    """Whether that is this process, one that it descends from or that descends from it, or has ended."""
    return os.getpid() in _ancestry(process) or process in _ancestry(os.getpid()) or not _is_alive(process)


def _ancestry(process: int) -> Iterator[int]:
    """A process, the one that started it, and so on."""
    while process:
        yield process
        process = _parent_of(process)


def _parent_of(process: int) -> int:
    """The id of the process that started that one, 0 for the first or one that has ended."""
    try:
        return int(_read(Path(f"/proc/{process}/stat")).rpartition(")")[2].split()[1])
    except OSError:
        return 0


def _remove_old(base: Path) -> None:
    """Remove the groups of servers that have ended without it."""
    for path in base.glob(f"{_PREFIX}*-*"):
        process = path.name.removeprefix(_PREFIX).partition("-")[0]
        if process.isdigit() and not _is_alive(int(process)):
            with suppress(OSError):
                path.rmdir()


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")
