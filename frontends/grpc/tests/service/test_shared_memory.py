"""Regions of CUDA shared memory, from messages to calls of the server."""

from naiad_grpc.service.shared_memory import SharedMemoryRpcs
from naiad_kit.shared_memory import CudaRegion


def test_a_cuda_region_is_registered_with_its_raw_handle(ask, server):
    ask(SharedMemoryRpcs, "CudaSharedMemoryRegister", name="r", raw_handle=b"\x00" * 64, device_id=1, byte_size=512)

    assert server.shared_memory.calls == [("cuda", "r", b"\x00" * 64, 1, 512)]


def test_the_status_tells_cuda_regions_by_name(ask, server):
    server.shared_memory.regions["cuda"] = [CudaRegion("a", 1, 16)]

    regions = ask(SharedMemoryRpcs, "CudaSharedMemoryStatus").regions

    assert (regions["a"].name, regions["a"].device_id, regions["a"].byte_size) == ("a", 1, 16)
