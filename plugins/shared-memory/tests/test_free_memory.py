"""How much memory is left, for machines and control groups of every kind."""

import pytest

from naiad_shared_memory.free_memory import free_bytes

MACHINE = {"/proc/meminfo": "MemTotal: 99 kB\nMemAvailable:    8 kB\n"}
GROUP = {"/proc/self/cgroup": "0::/pods/one\n"}

OLD_GROUP = {
    "/proc/self/cgroup": "5:cpu,memory:/old\n0::/\n",
    "/sys/fs/cgroup/memory/old/memory.limit_in_bytes": "1000\n",
    "/sys/fs/cgroup/memory/old/memory.usage_in_bytes": "400\n",
    "/sys/fs/cgroup/memory/old/memory.stat": "inactive_file 9\ntotal_inactive_file 100\n",
}


def of_group(path: str, most: str, used: int, cached: int) -> dict[str, str]:
    stat = f"anon 1\nfile {cached + 5}\ninactive_file {cached}\n"
    folder = f"/sys/fs/cgroup{path}"
    return {f"{folder}/memory.max": f"{most}\n", f"{folder}/memory.current": f"{used}\n", f"{folder}/memory.stat": stat}


@pytest.mark.parametrize(
    ("files", "free"),
    [
        ({}, None),
        (MACHINE, 8192),
        ({"/proc/meminfo": "MemTotal: 99 kB\n"}, None),
        (MACHINE | GROUP | of_group("/pods/one", "max", 1000, 0), 8192),
        (MACHINE | GROUP | of_group("/pods/one", "5000", 1000, 300), 4300),
        (MACHINE | GROUP | of_group("/pods/one", "5000", 6000, 0), 0),
        (MACHINE | GROUP | of_group("/pods/one", "7000", 0, 0) | of_group("/pods", "6000", 1000, 0), 5000),
        (MACHINE | {"/proc/self/cgroup": "0::/\n"} | of_group("", "900", 100, 100), 900),
        (MACHINE | {"/proc/self/cgroup": "12:memory:/old\n0::/\n"}, 8192),
        (MACHINE | OLD_GROUP, 700),
        (MACHINE | GROUP | {"/sys/fs/cgroup/pods/one/memory.max": "5000\n"}, 8192),
    ],
)
def test_what_is_left_is_the_least_that_anything_tells(files: dict[str, str], free: int | None) -> None:
    assert free_bytes(lambda path: files.get(path, "")) == free
