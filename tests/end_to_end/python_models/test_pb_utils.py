"""What a model.py finds in `pb_utils`, with a real server: flags, lines of the log, kinds, memory, readiness."""

import pytest

from ..running import Running, until
from .conftest import Ask
from .writing import DECOUPLED, PythonModel

OPTIONS = ("--model-control-mode=explicit", "--load-model=counts", "--load-model=steps", "--log-verbose=1")
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
        family = pb_utils.MetricFamily("pb_utils_seconds", "Seconds", pb_utils.MetricFamily.HISTOGRAM)
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
        assert self.args["model_instance_name"].startswith("steps_0")
        assert pb_utils.get_model_dir() == self.args["model_repository"] + "/" + self.args["model_version"]
        return 3
    """,
}
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
    "slow_to_say": PythonModel(
        "return [answer(1) for each in requests]",
        methods="def is_ready(self):\n    time.sleep(0.3)\n    return True",
    ),
}


@pytest.mark.parametrize("step", _STEPS)
def test_a_model_uses_what_the_module_has(ask: Ask, step: str) -> None:
    assert ask("steps", list(_STEPS).index(step)) == 3


def test_lines_of_every_level_are_in_the_log(running: Running, ask: Ask) -> None:
    ask("steps", list(_STEPS).index("lines of every level"))

    lines = [f"a line at LogLevel.{level}" for level in ("INFO", "WARNING", "ERROR", "VERBOSE")]
    lines += [f"a line by {name}" for name in ("log_info", "log_warn", "log_error", "log_verbose")]
    until(lambda: all(line in running.log for line in lines))


def test_a_model_is_not_ready_before_it_has_said_so(running: Running) -> None:
    assert running.load("slow_to_say").status == 200

    first = running.ask("GET", "/v2/models/slow_to_say/ready")

    assert (first.status, first.error.split(": ", 1)[0]) == (400, "Model version not ready")
    until(lambda: running.ask("GET", "/v2/models/slow_to_say/ready").status == 200)
