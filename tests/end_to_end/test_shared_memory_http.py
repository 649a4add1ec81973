"""Shared memory over HTTP with the real client library, and clients that pull their memory from under the server."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from pathlib import Path
from threading import Event, Thread
from typing import Any
from uuid import uuid4

import ml_dtypes
import numpy as np
import pytest
import tritonclient.http as triton
from tritonclient.utils import InferenceServerException, serialize_byte_tensor
from tritonclient.utils import shared_memory as shm

from . import models
from .asking import A, B
from .conftest import assert_sound
from .running import Running, until

PROJECT = Path(__file__).parents[2]
SIZE = A.nbytes
LARGE = 150_000


@pytest.fixture(scope="module")
def sharing(written: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A server that lets clients register shared memory."""
    running = Running(written, tmp_path_factory.mktemp("server") / "log", "--allow-client-shm=true")
    try:
        assert running.port
        yield running
        running.stop()
    finally:
        running.kill()


@pytest.fixture
def server(sharing: Running) -> Iterator[Running]:
    """That server, which every test must leave sound, without a region and without a descriptor more."""
    before = descriptors(sharing)
    yield sharing
    with sharing.client() as client:
        client.unregister_system_shared_memory()
    assert_sound(sharing)
    assert until(lambda: descriptors(sharing) <= before)


@pytest.fixture
def make_region() -> Iterator[Callable[[int], Any]]:
    """Make segments of so many bytes with the client library; they are gone with the test."""
    with ExitStack() as stack:

        def make(byte_size: int) -> Any:
            name = f"naiad_test_{uuid4().hex}"
            made = shm.create_shared_memory_region(name, f"/{name}", byte_size)
            stack.callback(shm.destroy_shared_memory_region, made)
            return made

        yield make


def descriptors(running: Running) -> int:
    """How many files and connections it has open, but for connections that are about to be closed."""
    links = [path.readlink() for path in Path(f"/proc/{running.pid}/fd").iterdir() if path.is_symlink()]
    return sum("socket:" not in str(link) for link in links)


def key_of(region: Any) -> str:
    key: str = region._shm_key
    return key


def file_of(region: Any) -> Path:
    return Path("/dev/shm") / key_of(region).lstrip("/")


def placed(name: str, shape: tuple[int, ...], datatype: str, region: str, size: int, offset: int = 0) -> Any:
    given = triton.InferInput(name, list(shape), datatype)
    given.set_shared_memory(region, size, offset)
    return given


def wanted(name: str, region: str, size: int, offset: int = 0) -> Any:
    output = triton.InferRequestedOutput(name)
    output.set_shared_memory(region, size, offset)
    return output


@pytest.mark.parametrize("model", ["custom_add_sub", "triton_add_sub", "onnx_add_sub"])
def test_a_model_of_each_kind_computes_from_and_to_shared_memory(
    server: Running, make_region: Callable[[int], Any], model: str
) -> None:
    region = make_region(4 * SIZE)
    shm.set_shared_memory_region(region, [A, B])
    inputs = [placed("A", A.shape, "FP32", "r", SIZE), placed("B", B.shape, "FP32", "r", SIZE, SIZE)]
    outputs = [wanted("SUM", "r", SIZE, 2 * SIZE), wanted("DIFFERENCE", "r", SIZE, 3 * SIZE)]

    with server.client() as client:
        client.register_system_shared_memory("r", key_of(region), 4 * SIZE)
        result = client.infer(model, inputs, outputs=outputs)

    read = [shm.get_contents_as_numpy(region, np.float32, A.shape, at * SIZE) for at in (2, 3)]
    np.testing.assert_array_equal(read, [A + B, A - B])
    assert [output["name"] for output in result.get_response()["outputs"]] == ["SUM", "DIFFERENCE"]
    assert "data" not in result.get_output("SUM")


def test_every_datatype_goes_through_shared_memory(server: Running, make_region: Callable[[int], Any]) -> None:
    arrays = {kind: np.array([[0, 1], [1, 0]]).astype(_dtype(kind)) for kind in models.DATATYPES if kind != "BYTES"}
    contents = {kind: array.tobytes() for kind, array in arrays.items()}
    contents["BYTES"] = serialize_byte_tensor(np.array([[b"a\0b", b""], ["ü".encode(), b"x"]], object)).item()
    region = make_region(4096)
    inputs, outputs, place = [], [], 0
    for kind, content in contents.items():
        region._mpsm_handle.buf[place : place + len(content)] = content
        inputs.append(placed(f"IN_{kind}", (2, 2), kind, "r", len(content), place))
        outputs.append(wanted(f"OUT_{kind}", "r", len(content), 2048 + place))
        place += len(content)

    with server.client() as client:
        client.register_system_shared_memory("r", key_of(region), 4096)
        client.infer("custom_mirror", inputs, outputs=outputs)

    assert bytes(region._mpsm_handle.buf[2048 : 2048 + place]) == b"".join(contents.values())


def _dtype(kind: str) -> Any:
    special = {"BOOL": np.bool_, "BF16": ml_dtypes.bfloat16, "FP16": np.float16, "FP32": np.float32, "FP64": np.float64}
    return special.get(kind) or np.dtype(kind.lower())


def test_shared_memory_bytes_and_json_are_mixed_in_one_request(
    server: Running, make_region: Callable[[int], Any]
) -> None:
    region = make_region(2 * SIZE)
    shm.set_shared_memory_region(region, [A])
    binary = triton.InferInput("B", list(B.shape), "FP32")
    binary.set_data_from_numpy(B)
    outputs = [triton.InferRequestedOutput("SUM", binary_data=False), wanted("DIFFERENCE", "r", SIZE, SIZE)]

    with server.client() as client:
        client.register_system_shared_memory("r", key_of(region), 2 * SIZE)
        result = client.infer(
            "custom_add_sub", [placed("A", A.shape, "FP32", "r", SIZE), binary], outputs=outputs, request_id="7"
        )

    assert result.get_response()["id"] == "7"
    np.testing.assert_array_equal(result.as_numpy("SUM"), A + B)
    np.testing.assert_array_equal(shm.get_contents_as_numpy(region, np.float32, B.shape, SIZE), A - B)


def test_regions_are_listed_and_forgotten(server: Running, make_region: Callable[[int], Any]) -> None:
    region = make_region(64)
    with server.client() as client:
        client.register_system_shared_memory("a b", key_of(region), 32, offset=16)

        listed = client.get_system_shared_memory_status()
        one = client.get_system_shared_memory_status("a b")
        client.unregister_system_shared_memory("a b")

        assert listed == one == [{"name": "a b", "key": key_of(region), "offset": 16, "byte_size": 32}]
        assert client.get_system_shared_memory_status() == []
        assert client.get_cuda_shared_memory_status() == []
        with pytest.raises(InferenceServerException, match="Unable to find system shared memory region: 'a b'"):
            client.get_system_shared_memory_status("a b")


def test_a_large_tensor_is_computed_by_many_clients_at_once(server: Running, make_region: Callable[[int], Any]) -> None:
    size = LARGE * 4

    def ask(number: int) -> bool:
        region = make_region(2 * size)
        with server.client() as client:
            client.register_system_shared_memory(f"r{number}", key_of(region), 2 * size)
            sent = np.full(LARGE, number, np.float32)
            same = True
            for step in range(20):
                shm.set_shared_memory_region(region, [sent + step])
                given = placed("x", (LARGE,), "FP32", f"r{number}", size)
                client.infer("echo", [given], outputs=[wanted("output", f"r{number}", size, size)])
                got = shm.get_contents_as_numpy(region, np.float32, (LARGE,), size)
                same = same and bool((got == number + step).all())
            return same

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(ask, range(8)))


def test_a_segment_that_its_client_truncates_and_stretches_never_stops_the_server(
    server: Running, make_region: Callable[[int], Any]
) -> None:
    size = LARGE * 4
    region = make_region(2 * size)
    stop = Event()

    def torment() -> None:
        while not stop.is_set():
            os.truncate(file_of(region), 4096)
            os.truncate(file_of(region), 2 * size)

    def ask(_: int) -> list[str]:
        told = []
        with server.client() as client:
            for _ in range(40):
                given, output = placed("x", (LARGE,), "FP32", "r", size), wanted("output", "r", size, size)
                try:
                    client.infer("echo", [given], outputs=[output])
                except InferenceServerException as error:
                    told.append(str(error))
        return told

    with server.client() as client:
        client.register_system_shared_memory("r", key_of(region), 2 * size)
    thread = Thread(target=torment)
    thread.start()
    try:
        with ThreadPoolExecutor(4) as pool:
            told = [each for errors in pool.map(ask, range(4)) for each in errors]
    finally:
        stop.set()
        thread.join()

    assert all("shared memory region 'r' is not all there any more" in each for each in told)


def test_a_segment_that_is_cut_off_is_an_error_until_it_is_registered_again(
    server: Running, make_region: Callable[[int], Any]
) -> None:
    region = make_region(4096)
    given = placed("x", (512,), "FP32", "r", 2048, 2048)
    with server.client() as client:
        client.register_system_shared_memory("r", key_of(region), 4096)
        client.infer("echo", [given])

        os.truncate(file_of(region), 100)
        with pytest.raises(InferenceServerException, match="has 100 bytes now") as caught:
            client.infer("echo", [given])
        os.truncate(file_of(region), 4096)

        assert caught.value.status() == "400"
        assert client.infer("echo", [given]).as_numpy("output").shape == (512,)


def test_requests_go_on_while_regions_come_and_go(server: Running, make_region: Callable[[int], Any]) -> None:
    region = make_region(64)
    shm.set_shared_memory_region(region, [np.arange(8, dtype=np.float32)])
    stop = Event()

    def churn() -> None:
        with server.client() as client:
            while not stop.is_set():
                client.register_system_shared_memory("r", key_of(region), 64)
                client.unregister_system_shared_memory("r")

    thread = Thread(target=churn)
    thread.start()
    outcomes = set()
    try:
        with server.client() as client:
            for _ in range(200):
                try:
                    result = client.infer("echo", [placed("x", (8,), "FP32", "r", 32)])
                    outcomes.add(str(result.as_numpy("output").tolist()))
                except InferenceServerException as error:
                    outcomes.add(error.message())
    finally:
        stop.set()
        thread.join()

    unknown = "Unable to find shared memory region: 'r'; register it before it is used"
    assert outcomes <= {str([float(value) for value in range(8)]), unknown}


DYING = """
import os, signal, sys
from tritonclient.utils import shared_memory as shm
import tritonclient.http as triton

url, key = sys.argv[1:]
region = shm.create_shared_memory_region("dying", key, 4096)
triton.InferenceServerClient(url).register_system_shared_memory("dying", key, 4096)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_the_region_of_a_client_that_died_can_be_used_and_unregistered(server: Running) -> None:
    key = f"/naiad_test_{uuid4().hex}"
    died = subprocess.run([sys.executable, "-c", DYING, server.url, key], check=False, timeout=60)
    assert died.returncode == -signal.SIGKILL
    with suppress(FileNotFoundError):  # the dead client's resource tracker may have unlinked it
        (Path("/dev/shm") / key.lstrip("/")).unlink()

    with server.client() as client:
        result = client.infer("echo", [placed("x", (8,), "FP32", "dying", 32)])
        client.unregister_system_shared_memory("dying")

    assert result.as_numpy("output").tolist() == [0.0] * 8


def test_registering_again_and_again_leaves_nothing_behind(server: Running, make_region: Callable[[int], Any]) -> None:
    region = make_region(64)
    before = descriptors(server)
    with server.client() as client:
        for _ in range(50):
            client.register_system_shared_memory("r", key_of(region), 64)
            with pytest.raises(InferenceServerException, match="already in manager"):
                client.register_system_shared_memory("r", key_of(region), 64)
            with pytest.raises(InferenceServerException, match="invalid args"):
                client.register_system_shared_memory("s", key_of(region), 1 << 40)
            client.unregister_system_shared_memory("r")

    assert until(lambda: descriptors(server) == before)


def test_a_server_that_was_not_told_to_share_refuses(shared: Running, make_region: Callable[[int], Any]) -> None:
    region = make_region(64)

    with (
        shared.client() as client,
        pytest.raises(InferenceServerException, match="Start the server with '--allow-client-shm=true'") as caught,
    ):
        client.register_system_shared_memory("r", key_of(region), 64)

    assert caught.value.status() == "501"


def test_the_program_of_the_page_prints_what_the_page_says(tmp_path: Path) -> None:
    page = (PROJECT / "docs" / "shared_memory.md").read_text(encoding="utf-8")
    (program,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    (printed,) = re.findall(r"```\n(\[\[.*?)```", page, re.DOTALL)
    example = tmp_path / "models" / "add_sub" / "1"
    example.mkdir(parents=True)
    (example / "model.py").write_bytes((PROJECT / "examples/models/add_sub/1/model.py").read_bytes())
    (example.parent / "config.pbtxt").write_bytes((PROJECT / "examples/models/add_sub/config.pbtxt").read_bytes())
    running = Running(tmp_path / "models", tmp_path / "log", "--allow-client-shm=true")

    try:
        told = program.replace("localhost:8000", running.url).replace('"/numbers"', f'"/naiad_test_{uuid4().hex}"')
        ran = subprocess.run([sys.executable, "-c", told], check=False, capture_output=True, text=True, timeout=60)
    finally:
        running.kill()

    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout == printed
