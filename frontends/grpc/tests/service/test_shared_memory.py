"""Regions of shared memory, from messages to calls of the server."""

import pytest

from naiad.shared_memory import CudaRegion, SystemRegion
from naiad_grpc.service.shared_memory import SharedMemoryRpcs


def test_a_system_region_is_registered_as_it_was_described(ask, server):
    ask(SharedMemoryRpcs, "SystemSharedMemoryRegister", name="r", key="/k", offset=64, byte_size=2**63)

    assert server.shared_memory.calls == [("system", "r", "/k", 64, 2**63)]


def test_a_cuda_region_is_registered_with_its_raw_handle(ask, server):
    ask(SharedMemoryRpcs, "CudaSharedMemoryRegister", name="r", raw_handle=b"\x00" * 64, device_id=1, byte_size=512)

    assert server.shared_memory.calls == [("cuda", "r", b"\x00" * 64, 1, 512)]


@pytest.mark.parametrize(("rpc", "kind"), [("System", "system"), ("Cuda", "cuda")])
@pytest.mark.parametrize("name", ["r", ""])
def test_one_region_or_all_of_a_kind_are_unregistered(ask, server, rpc, kind, name):
    ask(SharedMemoryRpcs, f"{rpc}SharedMemoryUnregister", name=name)

    assert server.shared_memory.calls == [(kind, "unregister", name)]


def test_the_status_tells_system_regions_by_name(ask, server):
    server.shared_memory.regions["system"] = [SystemRegion("a", "/k", 8, 16), SystemRegion("b", "/l", 0, 4)]

    regions = ask(SharedMemoryRpcs, "SystemSharedMemoryStatus").regions
    only = ask(SharedMemoryRpcs, "SystemSharedMemoryStatus", name="b").regions

    assert (sorted(regions), sorted(only)) == (["a", "b"], ["b"])
    assert (regions["a"].name, regions["a"].key, regions["a"].offset, regions["a"].byte_size) == ("a", "/k", 8, 16)


def test_the_status_tells_cuda_regions_by_name(ask, server):
    server.shared_memory.regions["cuda"] = [CudaRegion("a", 1, 16)]

    regions = ask(SharedMemoryRpcs, "CudaSharedMemoryStatus").regions

    assert (regions["a"].name, regions["a"].device_id, regions["a"].byte_size) == ("a", 1, 16)
