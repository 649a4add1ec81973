"""Behaviours of shared memory: regions, tensors that stay in them, and locations that are refused."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np

from naiad_tensors.datatypes import TENSOR_TYPES
from naiad_testing.frontends.calls import Call, Input, Location, Output
from naiad_testing.frontends.inference import SUMS, A, B, edges
from naiad_testing.frontends.refusals import refusal
from naiad_testing.frontends.stage import PATIENCE, Served, Stage
from naiad_testing.frontends.table import Table

SHARED_MEMORY = Table()
_HANDLE = b"A" * 88
ROW = np.array([[0, 1, 2, 3]], np.int8)


@dataclass(frozen=True)
class Segment:
    """A file of system shared memory, registered as the region `r`."""

    path: Path
    served: Served

    @property
    def key(self) -> str:
        """Its name."""
        return f"/{self.path.name}"

    def register(self, name: str, byte_size: int, offset: int = 0) -> None:
        """Register a part of it."""
        self.served.adapter.register_system(name, self.key, byte_size, offset)


@contextmanager
def shared_segment(stage: Stage, size: int = 64, served: Served | None = None) -> Iterator[Segment]:
    """A segment of so many bytes, 0 to 63 and again, all of it the region `r`; no region is there afterwards."""
    path = Path(f"/dev/shm/naiad_test_{uuid4().hex}")  # noqa: S108 - that is where segments are
    path.write_bytes(bytes(range(64)) * (size // 64))
    segment = Segment(path, served or stage.shared)
    try:
        segment.register("r", size)
        yield segment
        segment.served.adapter.unregister("system")
        assert segment.served.adapter.regions("system") == {}
    finally:
        path.unlink()


def mirrored(source: Location, target: Location, **more: Any) -> Call:
    """A request to give four INT8 back, from one location to another."""
    shared_input = Input("IN_INT8", None, "INT8", (1, 4), source)
    return Call("mirror", [shared_input], [Output("OUT_INT8", location=target)], **more)


@SHARED_MEMORY.behaviour
def regions_are_registered_listed_and_unregistered(stage: Stage) -> None:
    adapter = stage.shared.adapter
    with shared_segment(stage) as segment:
        segment.register("a b/ü", 16, offset=8)
        one, both = adapter.regions("system", "a b/ü"), adapter.regions("system")
        adapter.unregister("cuda")
        of_other_kind = adapter.regions("system")
        adapter.unregister("system", "a b/ü")
        rest = adapter.regions("system")

    assert one == {"a b/ü": {"name": "a b/ü", "key": segment.key, "offset": 8, "byte_size": 16}}
    assert (set(both), set(of_other_kind), set(rest)) == ({"r", "a b/ü"}, {"r", "a b/ü"}, {"r"})
    assert adapter.regions("cuda") == {}


@SHARED_MEMORY.behaviour
def a_region_that_cannot_be_is_refused(stage: Stage) -> None:
    adapter = stage.shared.adapter
    with shared_segment(stage) as segment:
        assert "'r'" in refusal(stage, lambda: segment.register("r", 8), "AlreadyExistsError")
        assert "'r'" in refusal(stage, lambda: adapter.regions("cuda", "r"), "NotFoundError")
        assert "'none'" in refusal(stage, lambda: adapter.regions("system", "none"), "NotFoundError")
        assert "'//'" in refusal(stage, lambda: adapter.register_system("x", "//", 8), "InvalidArgumentError")
        assert "naiad_none" in refusal(stage, lambda: adapter.register_system("x", "/naiad_none", 8), "NotFoundError")
        assert "'x'" in refusal(stage, lambda: adapter.register_cuda("x", _HANDLE, 0, 64), "InvalidArgumentError")
        assert set(adapter.regions("system")) == {"r"}


@SHARED_MEMORY.behaviour
def clients_may_not_register_unless_the_option_says_so(stage: Stage) -> None:
    with stage.serving() as served:
        adapter = served.adapter
        for action in (
            lambda: adapter.register_system("r", "/k", 64),
            lambda: adapter.register_cuda("r", _HANDLE, 0, 64),
            lambda: adapter.unregister("system", "r"),
            lambda: adapter.unregister("system"),
            lambda: adapter.unregister("cuda"),
        ):
            assert "--allow-client-shm" in refusal(stage, action, "UnsupportedError")
        assert (adapter.regions("system"), adapter.regions("cuda")) == ({}, {})


@SHARED_MEMORY.behaviour
def without_its_plugin_shared_memory_is_refused_and_everything_else_works(stage: Stage) -> None:
    with stage.serving(plugins=stage.without("shared_memory")) as served:
        adapter = served.adapter
        at = Location("r", 32)
        for action in (
            lambda: adapter.regions("system"),
            lambda: adapter.register_system("r", "/k", 64),
            lambda: adapter.register_cuda("r", _HANDLE, 0, 64),
            lambda: adapter.unregister("cuda"),
            lambda: adapter.infer(mirrored(Location("r", 4), Location("r", 4))),
            lambda: adapter.infer(Call("add_sub", SUMS, [Output("SUM", location=at)])),
        ):
            assert "naiad-shared-memory" in refusal(stage, action, "UnsupportedError")
        assert adapter.infer(Call("add_sub", SUMS)).model == "add_sub"
        assert not any("shared_memory" in name for name in adapter.server_metadata()["extensions"])


@SHARED_MEMORY.behaviour
def tensors_stay_in_shared_memory(stage: Stage) -> None:
    with shared_segment(stage) as segment:
        answer = segment.served.adapter.infer(mirrored(Location("r", 4, 8), Location("r", 4, 32)))

        assert (answer.outputs, answer.datatypes) == ({"OUT_INT8": None}, {"OUT_INT8": "INT8"})
        assert segment.path.read_bytes() == bytes(range(32)) + bytes(range(8, 12)) + bytes(range(36, 64))


@SHARED_MEMORY.behaviour
def every_datatype_goes_through_shared_memory(stage: Stage) -> None:
    strings = b"".join(len(each).to_bytes(4, "little") + each for each in edges("BYTES").ravel())
    contents = {kind: strings if kind == "BYTES" else edges(kind).tobytes() for kind in TENSOR_TYPES}
    inputs, outputs, offset = [], [], 0
    for kind, content in contents.items():
        inputs.append(Input(f"IN_{kind}", None, kind, (2, 2), Location("r", len(content), offset)))
        outputs.append(Output(f"OUT_{kind}", location=Location("r", len(content), 2048 + offset)))
        offset += len(content)
    with shared_segment(stage, 4096) as segment:
        sent = b"".join(contents.values())
        segment.path.write_bytes(sent.ljust(4096, b"\0"))

        segment.served.adapter.infer(Call("mirror", inputs, outputs))

        assert segment.path.read_bytes()[2048 : 2048 + offset] == sent


@SHARED_MEMORY.behaviour
def shared_and_sent_tensors_may_be_mixed(stage: Stage) -> None:
    with shared_segment(stage) as segment:
        segment.path.write_bytes(A.tobytes() + bytes(32))
        shared = Input("A", None, "FP32", A.shape, Location("r", 32))

        answer = segment.served.adapter.infer(
            Call(
                "add_sub",
                [shared, SUMS[1]],
                [Output("SUM"), Output("DIFFERENCE", location=Location("r", 32, 32))],
                id="7",
            )
        )

        assert answer.id == "7"
        np.testing.assert_array_equal(answer.outputs["SUM"], A + B)
        assert segment.path.read_bytes()[32:] == (A - B).tobytes()


@SHARED_MEMORY.behaviour
def a_large_tensor_comes_back_the_same(stage: Stage) -> None:
    sent = np.random.default_rng(1).random((1, 160_000), np.float32)
    with shared_segment(stage, 2 * sent.nbytes) as segment:
        segment.path.write_bytes(sent.tobytes() + bytes(sent.nbytes))
        shared_input = Input("IN_FP32", None, "FP32", sent.shape, Location("r", sent.nbytes))
        target = Output("OUT_FP32", location=Location("r", sent.nbytes, sent.nbytes))

        segment.served.adapter.infer(Call("mirror", [shared_input], [target]))

        assert segment.path.read_bytes()[sent.nbytes :] == sent.tobytes()


@SHARED_MEMORY.behaviour
def an_output_that_does_not_fit_is_refused(stage: Stage) -> None:
    with shared_segment(stage) as segment:
        call = mirrored(Location("r", 4), Location("r", 3, 32), id="7")

        message = refusal(stage, lambda: segment.served.adapter.infer(call), "InvalidArgumentError")

        assert message.startswith("[request id: 7] ")
        assert "'OUT_INT8'" in message
        assert segment.path.read_bytes() == bytes(range(64))


@SHARED_MEMORY.cases(
    {
        f"{what}, {side}": (at, side, error, fact)
        for what, at, error, fact in (
            ("unknown region", Location("none", 4), "NotFoundError", "'none'"),
            ("offset", Location("r", 4, 64), "InvalidArgumentError", "'r'"),
            ("end", Location("r", 4, 61), "InvalidArgumentError", "'r'"),
        )
        for side in ("input", "output")
    }
    | {"size of the tensor, input": (Location("r", 5), "input", "InvalidArgumentError", "got 5")}
)
def a_location_that_cannot_be_is_refused_before_the_model_runs(
    stage: Stage, wrong: Location, side: str, error: str, fact: str
) -> None:
    good = Location("r", 4)
    with shared_segment(stage) as segment:
        before = len(segment.served.backend.batches)
        call = mirrored(wrong, good) if side == "input" else mirrored(good, wrong)

        assert fact in refusal(stage, lambda: segment.served.adapter.infer(call), error)
        assert len(segment.served.backend.batches) == before


@SHARED_MEMORY.behaviour
def a_segment_that_shrinks_while_the_model_runs_is_refused(stage: Stage) -> None:
    with stage.serving({"allow-client-shm": True}) as served, shared_segment(stage, served=served) as segment:
        served.backend.hold()
        pending = served.adapter.begin(mirrored(Location("r", 4), Location("r", 4, 32)))
        served.backend.wait_until_held(PATIENCE)
        segment.path.write_bytes(b"short")
        served.backend.release()

        assert "'r'" in refusal(stage, pending.result, "InvalidArgumentError")
        assert segment.path.read_bytes() == b"short"


@SHARED_MEMORY.behaviour
def a_region_that_is_unregistered_while_the_model_runs_still_takes_the_answer(stage: Stage) -> None:
    with stage.serving({"allow-client-shm": True}) as served, shared_segment(stage, served=served) as segment:
        served.backend.hold()
        pending = served.adapter.begin(mirrored(Location("r", 4), Location("r", 4, 32)))
        served.backend.wait_until_held(PATIENCE)
        served.adapter.unregister("system", "r")
        served.backend.release()
        pending.result()

        assert segment.path.read_bytes()[32:36] == bytes(range(4))


@SHARED_MEMORY.behaviour
def the_answer_to_a_client_that_left_is_not_written(stage: Stage) -> None:
    with stage.serving({"allow-client-shm": True}) as served, shared_segment(stage, served=served) as segment:
        call = mirrored(Location("r", 4), Location("r", 4, 32), parameters={"patient": True})
        pending = served.adapter.begin(call)
        assert served.backend.waits.wait(PATIENCE)
        pending.cancel()
        assert served.backend.cancelled.wait(PATIENCE)

        served.adapter.infer(mirrored(Location("r", 4), Location("r", 4, 40)))

        assert segment.path.read_bytes()[32:36] == bytes(range(32, 36))
