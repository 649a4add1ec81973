"""What a model.py finds in `pb_utils`, in threads and isolated: names, tables, calls, cancellation, log, readiness."""

from dataclasses import replace

import pytest

from ..running import Running, until
from .conftest import Ask
from .writing import DECOUPLED, PythonModel

LOADED = ("counts", "steps", "isolated_steps", "watches", "isolated_watches", "gathers", "isolated_gathers")
OPTIONS = ("--model-control-mode=explicit", *(f"--load-model={name}" for name in LOADED), "--log-verbose=1")
_STEPS = {
    "flags": """
        request = asked("counts", 1)
        request.set_flags(pb_utils.TRITONSERVER_REQUEST_FLAG_SEQUENCE_START)
        assert request.flags() == 1
        request.set_flags(3)
        return request.flags()
    """,
    "lines of every level": """
        for level in (pb_utils.Logger.INFO, pb_utils.Logger.WARNING, pb_utils.Logger.ERROR, pb_utils.Logger.VERBOSE):
            assert isinstance(level, pb_utils.Logger.LogLevel)
            pb_utils.Logger.log(f"a line at {level}", level)
        for write in (pb_utils.Logger.log_info, pb_utils.Logger.log_warn, pb_utils.Logger.log_error):
            write(f"a line by {write.__name__}")
        pb_utils.Logger.log_verbose("a line by log_verbose")
        for wrong in (("x", 7), ("x", None), (5,)):
            try:
                pb_utils.Logger.log(*wrong)
            except TypeError:
                continue
            raise AssertionError(wrong)
        return 3
    """,
    "kinds of metrics": """
        kinds = [pb_utils.MetricFamily.COUNTER, pb_utils.MetricFamily.GAUGE, pb_utils.MetricFamily.HISTOGRAM]
        assert list(map(str, kinds)) == ["MetricKind.COUNTER", "MetricKind.GAUGE", "MetricKind.HISTOGRAM"]
        name = f"pb_utils_{self.args['model_name']}_seconds"
        family = pb_utils.MetricFamily(name, "Seconds", pb_utils.MetricFamily.HISTOGRAM)
        metric = family.Metric(labels={"a": "b"}, buckets=[1, 2])
        assert isinstance(metric, pb_utils.Metric)
        metric.observe(1.5)
        return 3
    """,
    "memory": """
        memory = pb_utils.PreferredMemory(pb_utils.TRITONSERVER_MEMORY_CPU, 0)
        assert memory.memory_type() is pb_utils.TRITONSERVER_MEMORY_CPU
        request = pb_utils.InferenceRequest(
            model_name="counts", inputs=requests[0].inputs(), requested_output_names=["Y"], preferred_memory=memory
        )
        responses = request.exec(decoupled=True)
        assert isinstance(responses, pb_utils.ResponseIterator)
        return sum(len(each.output_tensors()) for each in responses)
    """,
    "the compiled module": """
        import c_python_backend_utils as compiled
        assert compiled.InferenceRequest is pb_utils.InferenceRequest is type(requests[0])
        assert isinstance(requests[0].trace(), compiled.InferenceTrace)
        assert compiled.MetricKind.GAUGE is compiled.GAUGE
        return 3
    """,
    "arguments": """
        assert self.args["model_instance_name"].startswith(self.args["model_name"] + "_0")
        assert all(type(value) is str for value in self.args.values())
        assert pb_utils.get_model_dir() == self.args["model_repository"] + "/" + self.args["model_version"]
        return 3
    """,
    "type tables": """
        for name, number, kind in (
            ("TYPE_BOOL", 1, np.bool_),
            ("TYPE_UINT8", 2, np.uint8),
            ("TYPE_INT64", 9, np.int64),
            ("TYPE_FP16", 10, np.float16),
            ("TYPE_FP32", 11, np.float32),
            ("TYPE_STRING", 13, np.object_),
        ):
            assert np.dtype(pb_utils.triton_string_to_numpy(name)) == np.dtype(kind)
            assert np.dtype(pb_utils.TRITON_STRING_TO_NUMPY[name]) == np.dtype(kind)
            assert pb_utils.triton_to_numpy_type(number) is kind
            assert pb_utils.numpy_to_triton_type(kind) == number
        texts = np.array([b"a", b"bc"], dtype=object)
        assert pb_utils.deserialize_bytes_tensor(pb_utils.serialize_byte_tensor(texts)).tolist() == [b"a", b"bc"]
        return 3
    """,
    "dlpack": """
        tensor = pb_utils.Tensor("T", np.arange(6, dtype=np.float32).reshape(2, 3))
        again = pb_utils.Tensor.from_dlpack("U", tensor.to_dlpack())
        assert (again.name(), again.shape(), again.triton_dtype(), again.is_cpu()) == ("U", [2, 3], 11, True)
        assert again.as_numpy().tolist() == tensor.as_numpy().tolist()
        assert np.from_dlpack(pb_utils.Tensor.from_dlpack("V", tensor)).tolist() == tensor.as_numpy().tolist()
        assert requests[0].inputs()[0].is_cpu() is True
        return 3
    """,
    "trace": """
        assert isinstance(requests[0].trace(), pb_utils.InferenceTrace)
        assert requests[0].trace().get_context() is None
        return 3
    """,
    "the request": """
        (request,) = requests
        assert request.requested_output_names() == {"Y"}
        assert (request.correlation_id(), request.flags(), request.timeout()) == (0, 0, 0)
        assert request.is_cancelled() is False
        request.set_release_flags(pb_utils.TRITONSERVER_REQUEST_RELEASE_ALL)
        for flags in (7, -1):
            try:
                request.set_release_flags(flags)
            except (pb_utils.TritonModelException, TypeError):
                continue
            raise AssertionError(flags)
        assert pb_utils.get_input_tensor_by_name(request, "nothing") is None
        return 3
    """,
    "errors of calls": """
        request = asked("nowhere", 1)
        response = request.exec()
        assert response.has_error() and isinstance(response.error(), pb_utils.TritonError)
        assert "nowhere" in response.error().message()
        assert asked("counts", 1).exec().has_error()
        codes = [getattr(pb_utils.TritonError, name) for name in ("UNKNOWN", "INTERNAL", "NOT_FOUND", "CANCELLED")]
        assert [pb_utils.TritonError("x", code).code() for code in codes] == codes
        return 3
    """,
    "model control": """
        assert pb_utils.is_model_ready("counts") is True
        assert pb_utils.is_model_ready("nowhere") is False
        return 3
    """,
    "cancellation": """
        watching = "isolated_watches" if self.args["model_name"].startswith("isolated") else "watches"
        responses = asked(watching, 0).exec(decoupled=True)
        assert value(next(responses).output_tensors(), "Y") == 0
        responses.cancel()
        assert [each.has_error() for each in responses] == [True]
        (seen,) = [each for each in asked(watching, 1).exec(decoupled=True) if each.output_tensors()]
        return value(seen.output_tensors(), "Y")
    """,
}
_WATCHES = """
for request in requests:
    sender = request.get_response_sender()
    if value(request.inputs()) == 1:
        sender.send(answer(self.seen), flags=FINAL)
        continue
    assert not request.is_cancelled()
    sender.send(answer(0))
    until = time.monotonic() + 20
    while not request.is_cancelled() and time.monotonic() < until:
        time.sleep(0.005)
    self.seen = request.is_cancelled() + 2 * sender.is_cancelled()
    sender.send(flags=FINAL)
"""
_GATHERS = """
async def count(responses):
    return len([each async for each in responses if each.output_tensors()])

async def gathered():
    calls = [asked("counts", number).async_exec(decoupled=True) for number in range(2)]
    return sum(await asyncio.gather(*[count(await call) for call in calls]))

for request in requests:
    request.get_response_sender().send(answer(await gathered()), flags=FINAL)
"""
ISOLATED = 'parameters { key: "isolation" value { string_value: "process" } }'
_METHODS = "def initialize(self, args):\n    self.args = args\n" + "".join(
    f"\ndef step_{number}(self, requests):\n{body}" for number, body in enumerate(_STEPS.values())
).replace("\n        ", "\n    ")
MODELS = {
    "counts": PythonModel(
        """
        for request in requests:
            sender = request.get_response_sender()
            for number in range(3):
                sender.send(answer(number))
            sender.send(flags=FINAL)
        """,
        config=DECOUPLED,
    ),
    "steps": PythonModel(
        """
        step = getattr(self, f"step_{value(requests[0].inputs())}")
        return [answer(step(requests)) for each in requests]
        """,
        methods=_METHODS,
    ),
    "watches": PythonModel(_WATCHES, config=DECOUPLED),
    "gathers": PythonModel(_GATHERS, definition="async def"),
    "slow_to_say": PythonModel(
        "return [answer(1) for each in requests]",
        above="from pathlib import Path",
        methods="""
        def initialize(self, args):
            self.silent = Path(args["model_repository"]) / "silent"

        def is_ready(self):
            while self.silent.exists():
                time.sleep(0.005)
            return True
        """,
    ),
}
MODELS |= {
    f"isolated_{name}": replace(MODELS[name], config=f"{MODELS[name].config}\n{ISOLATED}")
    for name in ("steps", "watches", "gathers")
}
both = pytest.mark.parametrize("prefix", ["", "isolated_"], ids=["thread", "isolated"])


@both
@pytest.mark.parametrize("step", _STEPS)
def test_a_model_uses_what_the_module_has(ask: Ask, step: str, prefix: str) -> None:
    assert ask(f"{prefix}steps", list(_STEPS).index(step)) == 3


@both
def test_several_streams_are_awaited_at_once(ask: Ask, prefix: str) -> None:
    assert ask(f"{prefix}gathers", 0) == 6


def test_lines_of_every_level_are_in_the_log(running: Running, ask: Ask) -> None:
    ask("steps", list(_STEPS).index("lines of every level"))

    lines = [f"a line at LogLevel.{level}" for level in ("INFO", "WARNING", "ERROR", "VERBOSE")]
    lines += [f"a line by {name}" for name in ("log_info", "log_warn", "log_error", "log_verbose")]
    until(lambda: all(line in running.log for line in lines))


def test_a_model_is_not_ready_before_it_has_said_so(running: Running) -> None:
    silent = running.repository / "slow_to_say" / "silent"
    silent.touch()
    assert running.load("slow_to_say").status == 200

    first = running.ask("GET", "/v2/models/slow_to_say/ready")
    silent.unlink()

    assert first.status == 400
    until(lambda: running.ask("GET", "/v2/models/slow_to_say/ready").status == 200)
