"""Shared memory through every client: registered, asked about, read, written, and given back."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any
from uuid import uuid4

import numpy as np
import pytest
from tritonclient.utils import InferenceServerException
from tritonclient.utils import shared_memory as shm

from ..asking import A, B
from .driving import Driven

SIZE = A.nbytes


@pytest.fixture
def make_region() -> Iterator[Callable[[int], Any]]:
    """Make segments of so many bytes with the client library; they are gone with the test."""
    with ExitStack() as stack:

        def make(byte_size: int) -> Any:
            name = f"naiad_clients_{uuid4().hex}"
            made = shm.create_shared_memory_region(name, f"/{name}", byte_size)
            stack.callback(shm.destroy_shared_memory_region, made)
            return made

        yield make


def regions(status: Any) -> dict[str, dict[str, Any]]:
    """Regions by name; gRPC has them so, and HTTP as a list."""
    if isinstance(status, list):
        return {each["name"]: each for each in status}
    return dict(status.get("regions", {}))


def test_a_region_is_registered_told_and_given_back(client: Driven, make_region: Callable[[int], Any]) -> None:
    region = make_region(2 * SIZE)

    client.register_system_shared_memory("mine", region._shm_key, SIZE, offset=SIZE)
    one = regions(client.get_system_shared_memory_status("mine"))
    client.register_system_shared_memory("other", region._shm_key, SIZE)
    both = regions(client.get_system_shared_memory_status())
    client.unregister_system_shared_memory("mine")
    left = regions(client.get_system_shared_memory_status())
    client.unregister_system_shared_memory()

    told = one["mine"]
    assert (told["key"], int(told["offset"]), int(told["byte_size"])) == (region._shm_key, SIZE, SIZE)
    assert (set(one), set(both), set(left)) == ({"mine"}, {"mine", "other"}, {"other"})
    assert regions(client.get_system_shared_memory_status()) == {}


def test_an_unknown_region_is_an_error(client: Driven) -> None:
    with pytest.raises(InferenceServerException, match="'nothing'"):
        client.get_system_shared_memory_status("nothing")
    with pytest.raises(InferenceServerException, match="'nothing'"):
        client.get_cuda_shared_memory_status("nothing")


def test_tensors_are_read_and_written_where_they_lie(client: Driven, make_region: Callable[[int], Any]) -> None:
    taken, given = make_region(2 * SIZE), make_region(2 * SIZE)
    shm.set_shared_memory_region(taken, [A, B])
    inputs = [client.shaped("A", A.shape), client.shaped("B", B.shape)]
    outputs = [client.wanted("SUM"), client.wanted("DIFFERENCE")]
    for number in (0, 1):
        inputs[number].set_shared_memory("taken", SIZE, offset=number * SIZE)
        outputs[number].set_shared_memory("given", SIZE, offset=number * SIZE)

    client.register_system_shared_memory("taken", taken._shm_key, 2 * SIZE)
    client.register_system_shared_memory("given", given._shm_key, 2 * SIZE)
    result = client.infer("custom_add_sub", inputs, outputs=outputs)
    client.unregister_system_shared_memory()

    assert result.get_output("SUM") is not None
    assert shm.get_contents_as_numpy(given, np.float32, A.shape).tolist() == (A + B).tolist()
    assert shm.get_contents_as_numpy(given, np.float32, A.shape, offset=SIZE).tolist() == (A - B).tolist()


def test_an_answer_that_does_not_fit_is_an_error(client: Driven, make_region: Callable[[int], Any]) -> None:
    region = make_region(SIZE)
    wanted = client.wanted("SUM")
    wanted.set_shared_memory("small", SIZE - 4)

    client.register_system_shared_memory("small", region._shm_key, SIZE)
    with pytest.raises(InferenceServerException, match="'SUM'"):
        client.infer("custom_add_sub", [client.tensor("A", A), client.tensor("B", B)], outputs=[wanted])
    client.unregister_system_shared_memory("small")


def test_a_cuda_region_that_is_none_is_refused(client: Driven) -> None:
    with pytest.raises(InferenceServerException, match="'mine'"):
        client.register_cuda_shared_memory("mine", b"x" * 64, 0, 64)
    client.unregister_cuda_shared_memory("mine")
    client.unregister_cuda_shared_memory()

    assert regions(client.get_cuda_shared_memory_status()) == {}
