"""Shared memory over HTTP with the real client library."""

import re
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
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
from .running import Running
from .sharing import LARGE, SIZE, key_of, placed, wanted

PROJECT = Path(__file__).parents[2]


@pytest.mark.parametrize("model", ["custom_add_sub", "triton_add_sub", "onnx_add_sub"])
def test_a_model_of_each_kind_computes_from_and_to_shared_memory(
    sharing: Running, make_region: Callable[[int], Any], model: str
) -> None:
    region = make_region(4 * SIZE)
    shm.set_shared_memory_region(region, [A, B])
    inputs = [placed("A", A.shape, "FP32", "r", SIZE), placed("B", B.shape, "FP32", "r", SIZE, SIZE)]
    outputs = [wanted("SUM", "r", SIZE, 2 * SIZE), wanted("DIFFERENCE", "r", SIZE, 3 * SIZE)]

    with sharing.client() as client:
        client.register_system_shared_memory("r", key_of(region), 4 * SIZE)
        result = client.infer(model, inputs, outputs=outputs)

    read = [shm.get_contents_as_numpy(region, np.float32, A.shape, at * SIZE) for at in (2, 3)]
    np.testing.assert_array_equal(read, [A + B, A - B])
    assert [output["name"] for output in result.get_response()["outputs"]] == ["SUM", "DIFFERENCE"]
    assert "data" not in result.get_output("SUM")


def test_every_datatype_goes_through_shared_memory(sharing: Running, make_region: Callable[[int], Any]) -> None:
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

    with sharing.client() as client:
        client.register_system_shared_memory("r", key_of(region), 4096)
        client.infer("custom_mirror", inputs, outputs=outputs)

    assert bytes(region._mpsm_handle.buf[2048 : 2048 + place]) == b"".join(contents.values())


def _dtype(kind: str) -> Any:
    special = {"BOOL": np.bool_, "BF16": ml_dtypes.bfloat16, "FP16": np.float16, "FP32": np.float32, "FP64": np.float64}
    return special.get(kind) or np.dtype(kind.lower())


def test_shared_memory_bytes_and_json_are_mixed_in_one_request(
    sharing: Running, make_region: Callable[[int], Any]
) -> None:
    region = make_region(2 * SIZE)
    shm.set_shared_memory_region(region, [A])
    binary = triton.InferInput("B", list(B.shape), "FP32")
    binary.set_data_from_numpy(B)
    outputs = [triton.InferRequestedOutput("SUM", binary_data=False), wanted("DIFFERENCE", "r", SIZE, SIZE)]

    with sharing.client() as client:
        client.register_system_shared_memory("r", key_of(region), 2 * SIZE)
        result = client.infer(
            "custom_add_sub", [placed("A", A.shape, "FP32", "r", SIZE), binary], outputs=outputs, request_id="7"
        )

    assert result.get_response()["id"] == "7"
    np.testing.assert_array_equal(result.as_numpy("SUM"), A + B)
    np.testing.assert_array_equal(shm.get_contents_as_numpy(region, np.float32, B.shape, SIZE), A - B)


def test_regions_are_listed_and_forgotten(sharing: Running, make_region: Callable[[int], Any]) -> None:
    region = make_region(64)
    with sharing.client() as client:
        client.register_system_shared_memory("a b", key_of(region), 32, offset=16)

        listed = client.get_system_shared_memory_status()
        one = client.get_system_shared_memory_status("a b")
        client.unregister_system_shared_memory("a b")

        assert listed == one == [{"name": "a b", "key": key_of(region), "offset": 16, "byte_size": 32}]
        assert client.get_system_shared_memory_status() == []
        assert client.get_cuda_shared_memory_status() == []
        with pytest.raises(InferenceServerException, match="Unable to find system shared memory region: 'a b'"):
            client.get_system_shared_memory_status("a b")


def test_a_large_tensor_is_computed_by_many_clients_at_once(
    sharing: Running, make_region: Callable[[int], Any]
) -> None:
    size = LARGE * 4

    def ask(number: int) -> bool:
        region = make_region(2 * size)
        with sharing.client() as client:
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
