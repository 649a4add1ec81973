"""Answers are sent without a copy, unless the model still holds what it answered with."""

import mmap
from types import SimpleNamespace

import numpy as np
import pytest

from naiad_custom.ownership import are_fresh, settle
from naiad_tensors.tensors import Tensor


def test_a_fresh_array_is_left_alone():
    outputs = {"a": np.arange(4.0), "b": np.arange(4.0) + 1}

    assert are_fresh(outputs)


def test_a_buffer_that_somebody_holds_is_copied():
    buffer = np.arange(4.0)
    outputs = {"fresh": np.arange(4.0), "held": buffer}
    fresh = id(outputs["fresh"])

    assert not are_fresh(outputs)
    settle(outputs, [])
    buffer[:] = 0

    assert outputs["held"].tolist() == [0, 1, 2, 3]
    assert id(outputs["fresh"]) == fresh


def test_a_view_of_a_held_buffer_is_copied():
    buffer = np.arange(4.0)
    outputs = {"view": buffer[1:3]}

    assert not are_fresh(outputs)
    settle(outputs, [])
    buffer[:] = 0

    assert outputs["view"].tolist() == [1, 2]


def test_a_view_of_a_fresh_array_is_left_alone():
    outputs = {"view": np.arange(4.0)[1:3]}
    memory = outputs["view"].__array_interface__["data"]

    settle(outputs, [])

    assert outputs["view"].__array_interface__["data"] == memory


def test_an_input_that_is_handed_back_is_left_alone():
    received = np.arange(4.0)
    received.flags.writeable = False
    outputs = {"same": received, "view": received[:2]}

    settle(outputs, [received])

    assert outputs["same"] is received
    assert outputs["view"].base is received


def test_a_writable_input_is_handed_back_without_a_copy_unless_the_model_keeps_it():
    holders = [SimpleNamespace(array=np.arange(4.0)) for _ in range(2)]
    outputs = {str(number): each.array for number, each in enumerate(holders)}
    addresses = [array.ctypes.data for array in outputs.values()]
    kept = outputs["1"]

    settle(outputs, (each.array for each in holders))

    assert outputs["0"].ctypes.data == addresses[0]
    assert outputs["1"].ctypes.data != addresses[1]
    assert kept.tolist() == [0, 1, 2, 3]


def test_arrays_that_cannot_be_written_to_are_left_alone():
    received = np.frombuffer(bytes(32))
    outputs = {"received": received}

    settle(outputs, [])

    assert outputs["received"] is received


def test_memory_of_bytes_is_never_copied():
    received = bytes(32)
    outputs = {"array": np.frombuffer(received), "view": np.frombuffer(memoryview(received)[8:])[1:]}
    addresses = [array.ctypes.data for array in outputs.values()]

    settle(outputs, [])

    assert [array.ctypes.data for array in outputs.values()] == addresses


def _interface_of(buffer):
    return SimpleNamespace(__array_interface__={**buffer.__array_interface__}, kept=buffer)


def _read_only(buffer):
    view = buffer.view()
    view.flags.writeable = False
    return view


def _deep(buffer):
    class Subclass(np.ndarray):
        pass

    return np.asarray(buffer.view(Subclass)[1:])


OWNERS = {
    "bytearray": (lambda: bytearray(32), np.frombuffer),
    "view of a bytearray": (lambda: bytearray(32), lambda buffer: np.frombuffer(buffer)[1:]),
    "memoryview": (lambda: bytearray(32), lambda buffer: np.frombuffer(memoryview(buffer))),
    "memoryview itself": (lambda: bytearray(32), lambda buffer: memoryview(buffer).cast("d")),
    "read-only memoryview": (lambda: bytearray(32), lambda buffer: np.frombuffer(memoryview(buffer).toreadonly())),
    "array of an interface": (lambda: np.zeros(4), lambda buffer: np.asarray(_interface_of(buffer))),
    "interface": (lambda: np.zeros(4), _interface_of),
    "DLPack": (
        lambda: np.zeros(4),
        lambda buffer: SimpleNamespace(__dlpack__=buffer.__dlpack__, __dlpack_device__=buffer.__dlpack_device__),
    ),
    "array of DLPack": (lambda: np.zeros(4), np.from_dlpack),
    "mmap": (lambda: mmap.mmap(-1, 32), np.frombuffer),
    "read-only view": (lambda: np.zeros(4), _read_only),
    "broadcast": (lambda: np.zeros(1), lambda buffer: np.broadcast_to(buffer, 4)),
    "subclass": (lambda: np.zeros(4), _deep),
    "read-only array": (lambda: np.zeros(4), lambda buffer: buffer.setflags(write=False) or buffer),
}


def _overwrite(buffer):
    if isinstance(buffer, np.ndarray):
        buffer.setflags(write=True)
        buffer[:] = 7
    else:
        memoryview(buffer).cast("B").cast("d")[:] = memoryview(np.full(4, 7.0))


@pytest.mark.parametrize("kind", OWNERS)
def test_memory_that_a_model_fills_anew_is_copied_for_every_owner(kind):
    make, wrap = OWNERS[kind]
    buffer = make()
    outputs = {"output": wrap(buffer)}

    if not are_fresh(outputs):
        settle(outputs, [])
    _overwrite(buffer)

    assert set(np.asarray(outputs["output"]).tolist()) == {0.0}


VIEWS = {
    "tensor": lambda tensor: tensor,
    "array": lambda tensor: tensor.numpy(),
    "array of a detached tensor": lambda tensor: tensor.detach().numpy(),
    "array of a view": lambda tensor: tensor.view(2, 2)[1].numpy(),
}


@pytest.mark.parametrize("view", VIEWS)
def test_the_storage_of_a_tensor_of_pytorch_is_copied(view):
    torch = pytest.importorskip("torch")
    buffer = torch.zeros(4)
    outputs = {"output": VIEWS[view](buffer)}

    if not are_fresh(outputs):
        settle(outputs, [])
    buffer.fill_(7)

    assert set(Tensor.of("output", outputs["output"]).array.ravel().tolist()) == {0.0}


def test_lists_and_numbers_are_no_memory_of_the_model():
    outputs = {"list": [1, 2], "number": 1.5, "scalar": np.float32(2)}
    before = dict(outputs)

    settle(outputs, [])

    assert are_fresh({"list": [1, 2], "number": 1.5})
    assert all(outputs[name] is before[name] for name in before)


def test_what_cannot_be_read_as_an_array_is_left_for_the_kernel_to_refuse():
    class Strange:
        def __dlpack__(self, **options):
            raise RuntimeError("no")

        def __dlpack_device__(self):
            return 1, 0

    strange = Strange()
    outputs = {"output": strange}

    settle(outputs, [])

    assert outputs["output"] is strange


def test_other_holders_can_be_counted_in():
    array = np.arange(4.0)
    keep = [array]
    outputs = {"a": keep[0]}
    del array

    assert not are_fresh(outputs)
    assert are_fresh(outputs, holders=1)


def test_a_model_that_fills_one_buffer_anew_answers_right(folder, batch_of):
    folder.write("""
        import numpy as np
        from naiad_custom import INT64, Array, model

        @model
        class Reuse:
            def load(self, context):
                self.buffer = np.empty(1, np.int64)

            def execute(self, x: Array[INT64, 1]) -> Array[INT64, 1]:
                return np.copyto(self.buffer, x) or self.buffer
    """)
    instance = folder.instance()

    answers = [instance.execute(batch_of({"x": [number]}, batching=False)) for number in (1, 2)]

    assert [answer["output"].item() for answer in answers] == [1, 2]


def test_a_fresh_result_of_a_function_is_not_copied(folder, batch_of):
    folder.write("""
        import numpy as np
        from naiad_custom import INT64, Array, model

        MADE = []

        @model
        def fresh(x: Array[INT64, 1]) -> Array[INT64, 1]:
            made = x + 1
            MADE.append(made.__array_interface__["data"])
            return made
    """)
    instance = folder.instance()

    answer = instance.execute(batch_of({"x": [1]}, batching=False))["output"]

    assert answer.__array_interface__["data"] in instance._call.__globals__["MADE"]


def over_body(memory):
    """As a frontend makes it: a view of an array over a part of a body."""
    return np.frombuffer(memoryview(memory)[16:], np.float32).reshape(5, -1)


def over_lent_memory(_memory):
    """As shared memory is lent: an array over that of a loan, over mapped memory."""
    loan = np.frombuffer(memoryview(mmap.mmap(-1, 4096)), np.uint8)
    loans.append(loan)
    return np.ndarray((5, 204), np.float32, loan)


loans = []


@pytest.mark.parametrize("keep", [None, lambda array: array, lambda array: array[1:], memoryview])
@pytest.mark.parametrize("received", [over_body, over_lent_memory])
def test_an_input_over_received_memory_is_handed_back_without_a_copy_unless_the_model_keeps_it(received, keep):
    holder = SimpleNamespace(array=received(np.zeros(4096, np.uint8)))
    outputs = {"same": holder.array}
    kept = keep and keep(holder.array)

    settle(outputs, (each.array for each in [holder]))

    assert (outputs["same"] is holder.array) == (kept is None)
