"""A real GPU: another process allocates memory on it, and both see what the other writes."""

import subprocess
import sys

import pytest

from naiad.errors import InvalidArgumentError

OWNER = """
import ctypes, sys
cuda = ctypes.CDLL("libcuda.so.1")
device, context, address = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_uint64()
handle, content = (ctypes.c_ubyte * 64)(), (ctypes.c_ubyte * 256)(*range(256))
for result in (
    cuda.cuInit(0),
    cuda.cuDeviceGet(ctypes.byref(device), 0),
    cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), device),
    cuda.cuCtxPushCurrent_v2(context),
    cuda.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(256)),
    cuda.cuMemcpyHtoD_v2(address, content, ctypes.c_size_t(256)),
    cuda.cuIpcGetMemHandle(handle, address),
):
    assert result == 0, result
print(bytes(handle).hex(), flush=True)
sys.stdin.readline()
assert cuda.cuMemcpyDtoH_v2(content, address, ctypes.c_size_t(256)) == 0
print(bytes(content).hex(), flush=True)
"""

pytestmark = pytest.mark.gpu


@pytest.fixture
def owner():
    """Another process that holds 256 bytes, 0 to 255, on GPU 0; it tells its handle, and later what it sees."""
    with subprocess.Popen(
        [sys.executable, "-c", OWNER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as started:
        yield started
        started.kill()


def test_both_processes_see_what_the_other_writes(memory, owner):
    memory.register_cuda("r", bytes.fromhex(owner.stdout.readline()), 0, 256)
    region = memory.region("r")

    read = region.read(16, 8)
    region.write(0, 4, b"mine", "OUT")
    owner.stdin.write("\n")
    owner.stdin.flush()
    seen = bytes.fromhex(owner.stdout.readline())

    assert read.tolist() == list(range(16, 24))
    assert seen == b"mine" + bytes(range(4, 256))


def test_a_region_is_no_longer_than_the_allocation(memory, owner):
    handle = bytes.fromhex(owner.stdout.readline())

    with pytest.raises(InvalidArgumentError, match="invalid args"):
        memory.register_cuda("r", handle, 0, 1 << 30)


def test_a_handle_that_is_none_is_refused(memory):
    with pytest.raises(InvalidArgumentError, match="region 'r': CUDA could not"):
        memory.register_cuda("r", bytes(64), 0, 256)
