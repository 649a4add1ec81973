"""A TritonPythonModel that calls other models: exec, async_exec, decoupled ones, and what becomes of errors."""

import asyncio
import json

import numpy as np
import pytest

from naiad.errors import (
    InvalidArgumentError,
    ModelFailedError,
    ModelNotReadyError,
    NotFoundError,
    QueueFullError,
    UnavailableError,
    UnsupportedError,
)
from naiad.testing import serve

from .several import Repository


@pytest.fixture
def models(tmp_path) -> Repository:
    models = Repository(tmp_path / "models")
    models.double()
    models.count()
    return models


def y(outputs) -> int:
    return outputs["Y"].item()


def test_exec_gives_the_response_of_another_model(models):
    models.triton(
        "outer",
        """
        responses = []
        for request in requests:
            response = asked("double", value_of(request.inputs())).exec()
            assert not response.has_error()
            found = pb_utils.get_output_tensor_by_name(response, "Y")
            responses.append(answer(int(found.as_numpy()[0]) + 1))
        return responses
        """,
    )

    with serve(models.path) as client:
        assert y(client["outer"].infer(X=[4])) == 9


def test_async_execs_that_are_gathered_go_on_at_the_same_time(models):
    models.triton(
        "pair",
        """
        BOTH.wait(10)
        return [answer(value_of(request.inputs())) for request in requests]
        """,
        config="instance_group { count: 2 }",
        more="global BOTH\nBOTH = threading.Barrier(2)",
    )
    models.triton(
        "outer",
        """
        responses = await asyncio.gather(*(asked("pair", value).async_exec() for value in (3, 4)))
        return [answer(sum(value_of(response.output_tensors(), "Y") for response in responses))]
        """,
        definition="async def",
    )

    with serve(models.path) as client:
        assert [y(client["outer"].infer(X=[1])) for _ in range(2)] == [7, 7]


def test_async_execs_have_begun_before_they_are_awaited(models):
    models.triton(
        "outer",
        """
        begun = [asked("double", value).async_exec() for value in (1, 2)]
        return [answer(sum([value_of((await each).output_tensors(), "Y") for each in begun]))]
        """,
        definition="async def",
    )

    with serve(models.path) as client:
        assert y(client["outer"].infer(X=[1])) == 6


def test_exec_with_decoupled_gives_an_iterator(models):
    models.triton(
        "outer",
        """
        values = [value_of(response.output_tensors(), "Y") for response in asked("count", 100).exec(decoupled=True)]
        return [answer(sum(values))]
        """,
    )

    with serve(models.path) as client:
        assert y(client["outer"].infer(X=[1])) == 4950


def test_the_iterator_has_next_and_cancel(models):
    models.triton(
        "outer",
        """
        responses = asked("count", 3).exec(decoupled=True)
        first = value_of(responses.next().output_tensors(), "Y")
        responses.cancel()
        return [answer(10 * first + len(list(responses)))]
        """,
    )

    with serve(models.path) as client:
        assert y(client["outer"].infer(X=[1])) == 0


@pytest.mark.parametrize("loop", ["for", "async for"])
def test_async_exec_with_decoupled_is_iterated_in_both_ways(models, loop):
    models.triton(
        "outer",
        f"""
        total = 0
        for responses in await asyncio.gather(*(asked("count", n).async_exec(decoupled=True) for n in (3, 5))):
            {loop} response in responses:
                total += value_of(response.output_tensors(), "Y")
        return [answer(total)]
        """,
        definition="async def",
    )

    with serve(models.path) as client:
        assert y(client["outer"].infer(X=[1])) == 13


def test_a_decoupled_model_sends_on_what_a_decoupled_model_sends(models):
    models.triton(
        "outer",
        """
        for request in requests:
            sender = request.get_response_sender()
            async for response in await asked("count", value_of(request.inputs())).async_exec(decoupled=True):
                sender.send(answer(10 * value_of(response.output_tensors(), "Y")))
            sender.send(flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
        """,
        definition="async def",
        decoupled=True,
    )

    with serve(models.path) as client:
        assert [y(outputs) for outputs in client["outer"].stream(X=[4])] == [0, 10, 20, 30]


def test_a_thread_of_a_decoupled_model_may_call(models):
    models.triton(
        "outer",
        """
        for request in requests:
            threading.Thread(target=self.answer, args=(request.get_response_sender(),)).start()
        """,
        decoupled=True,
        more="""
        def answer(self, sender):
            response = asked("double", 21).exec()
            sender.send(response, flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
        """,
    )

    with serve(models.path) as client:
        assert [y(outputs) for outputs in client["outer"].stream(X=[1])] == [42]


def test_a_request_says_all_that_its_constructor_was_given(models):
    models.triton(
        "looks",
        """
        request = requests[0]
        seen = [request.request_id(), request.correlation_id(), request.timeout(), request.flags()]
        return [answer(1, parameters={"seen": json.dumps([*seen, json.loads(request.parameters())])})]
        """,
    )
    models.triton(
        "outer",
        """
        response = asked(
            "looks", 1, request_id="7", correlation_id=5, model_version=1, flags=3, timeout=9_000_000,
            parameters={"a": 1, "b": "two"}, trace=requests[0].trace(),
            preferred_memory=pb_utils.PreferredMemory(pb_utils.TRITONSERVER_MEMORY_CPU, 0),
        ).exec()
        return [answer(1, parameters=json.loads(response.parameters()))]
        """,
    )

    with serve(models.path) as client:
        response = client.send(client["outer"].request(X=[1]))

    assert json.loads(response.parameters["seen"]) == ["7", 5, 9_000_000, 3, {"a": 1, "b": "two"}]


ERRORS = {
    "an unknown model": ('asked("nobody", 1)', NotFoundError, "Model 'nobody' is not ready"),
    "an unknown version": ('asked("double", 1, model_version=9)', NotFoundError, "version 9 is not found"),
    "a wrong input": (
        'pb_utils.InferenceRequest(model_name="double", inputs=[])',
        InvalidArgumentError,
        "expected 1 inputs but got 0",
    ),
    "a decoupled model": ('asked("count", 1)', UnsupportedError, "Please use 'decoupled=True' argument"),
    "a model that raises": ('asked("broken", 1)', ModelFailedError, "ValueError: it broke"),
    "a model with an error of its own": ('asked("busy", 1)', UnavailableError, "come back later"),
}


EXEC, ASYNC_EXEC, STREAM = "{}.exec()", "await {}.async_exec()", "{}.exec(decoupled=True).next()"


@pytest.mark.parametrize(
    ("case", "how"),
    [
        (case, how)
        for case in ERRORS
        for how in (EXEC, ASYNC_EXEC, STREAM)
        if (case, how) != ("a decoupled model", STREAM)
    ],
)
def test_the_error_of_a_call_keeps_its_code_when_it_is_handed_on(models, case, how):
    call, kind, told = ERRORS[case]
    models.triton("broken", 'raise ValueError("it broke")')
    models.triton(
        "busy",
        """
        error = pb_utils.TritonError("come back later", pb_utils.TritonError.UNAVAILABLE)
        return [pb_utils.InferenceResponse(error=error)]
        """,
    )
    models.triton(
        "outer",
        f"""
        response = {how.format(call)}
        assert response.has_error()
        return [pb_utils.InferenceResponse(error=response.error())]
        """,
        definition="async def",
    )

    with serve(models.path) as client, pytest.raises(kind, match=told):
        client["outer"].infer(X=[1])


def test_the_message_of_an_error_can_be_raised(models):
    models.triton(
        "outer",
        """
        response = asked("nobody", 1).exec()
        if response.has_error():
            raise pb_utils.TritonModelException(response.error().message())
        """,
    )

    with (
        serve(models.path) as client,
        pytest.raises(
            ModelFailedError, match=r"Failed for execute the inference request\. Model 'nobody' is not ready"
        ),
    ):
        client["outer"].infer(X=[1])


def test_a_model_that_calls_itself_on_its_only_instance_gets_an_error_at_once(models):
    models.triton(
        "outer",
        """
        response = asked("outer", 1).exec()
        return [pb_utils.InferenceResponse(error=response.error())]
        """,
    )

    with serve(models.path) as client, pytest.raises(UnavailableError, match="ring 'outer' -> 'outer'"):
        client["outer"].infer(X=[1])


def test_a_model_calls_itself_where_it_has_instances_left(models):
    models.triton(
        "factorial",
        """
        value = value_of(requests[0].inputs())
        if value < 2:
            return [answer(1)]
        inner = asked("factorial", value - 1).exec()
        if inner.has_error():
            return [pb_utils.InferenceResponse(error=inner.error())]
        return [answer(value * value_of(inner.output_tensors(), "Y"))]
        """,
        config="instance_group { count: 5 }",
    )

    with serve(models.path) as client:
        assert y(client["factorial"].infer(X=[5])) == 120
        with pytest.raises(UnavailableError, match="would wait for ever"):
            client["factorial"].infer(X=[6])


def test_the_tensors_of_a_response_are_the_callers_own(models):
    models.triton("same", "return [pb_utils.InferenceResponse(request.inputs()) for request in requests]")
    models.triton(
        "outer",
        """
        array = np.array([1])
        inputs = [pb_utils.Tensor("X", array)]
        response = pb_utils.InferenceRequest(model_name="writes", inputs=inputs, requested_output_names=["Y"]).exec()
        found = response.output_tensors()[0].as_numpy()
        found += 1
        return [answer(100 * int(array[0]) + int(found[0]))]
        """,
    )
    models.triton(
        "writes",
        """
        array = requests[0].inputs()[0].as_numpy()
        array += 10
        return [pb_utils.InferenceResponse([pb_utils.Tensor("Y", array)])]
        """,
    )

    with serve(models.path) as client:
        assert y(client["outer"].infer(X=[1])) == 112


@pytest.mark.parametrize("part", ["initialize(self, args)", "finalize(self)"])
def test_calls_are_for_execute(models, part, caplog):
    models.triton(
        "outer", "return [answer(1) for request in requests]", more=f"def {part}:\n    asked('double', 1).exec()"
    )

    told = "BLS is only supported during the 'execute' function"
    if "initialize" in part:
        with pytest.raises(Exception, match=told), serve(models.path):
            pass
    else:
        with serve(models.path):
            pass
        assert told in caplog.text


EXPLICIT = {"model-control-mode": "explicit"}
LOADER = """
def initialize(self, args):
    self.was_ready = pb_utils.is_model_ready("double")
    if not self.was_ready:
        pb_utils.load_model(model_name="double")

def finalize(self):
    pb_utils.unload_model("double")
"""


def test_a_model_loads_another_in_initialize_and_unloads_it_in_finalize(models):
    models.triton(
        "outer",
        """
        ready = pb_utils.is_model_ready("double", "1")
        return [answer(100 * self.was_ready + 10 * ready + value_of(asked("double", 1).exec().output_tensors(), "Y"))]
        """,
        more=LOADER,
    )

    with serve(models.path, options={**EXPLICIT, "load-model": ("outer",), "model-load-thread-count": 1}) as client:
        assert y(client["outer"].infer(X=[1])) == 12
        client.wait_for(lambda server: server.unload("outer"))
        client.wait_for(gone("double"))


def gone(name):
    async def wait(server):
        while any(each.name == name and each.state != "UNAVAILABLE" for each in server.index()):  # noqa: ASYNC110
            await asyncio.sleep(0)

    return wait


def test_a_model_is_loaded_with_a_configuration_and_files(models):
    models.triton(
        "outer",
        """
        lines = [
            "from naiad_custom import INT64, Array, model",
            "@model",
            "def f(X: Array[INT64, 1]) -> Array[INT64, 1]: return X + 5",
        ]
        files = {"file:1/model.py": chr(10).join(lines).encode()}
        pb_utils.load_model("added", config=json.dumps({"backend": "python"}), files=files)
        inputs = [pb_utils.Tensor("X", np.array([1]))]
        response = pb_utils.InferenceRequest(model_name="added", inputs=inputs).exec()
        return [answer(value_of(response.output_tensors(), "output"))]
        """,
    )

    with serve(models.path, options=EXPLICIT) as client:
        assert y(client["outer"].infer(X=[1])) == 6


@pytest.mark.parametrize("call", ['load_model("double")', 'unload_model("double")'])
def test_models_are_loaded_and_unloaded_in_explicit_mode_alone(models, call):
    models.triton("outer", f"pb_utils.{call}")

    with (
        serve(models.path, options={"model-control-mode": "none", "load-model": ()}) as client,
        pytest.raises(ModelFailedError, match="explicit model load / unload is not allowed"),
    ):
        client["outer"].infer(X=[1])


def test_a_model_that_loads_itself_while_it_is_loaded_is_refused(models):
    models.triton("outer", "pass", more="def initialize(self, args): pb_utils.load_model('outer')")

    with (
        pytest.raises(Exception, match="'outer' is being loaded and asks to load or unload 'outer'"),
        serve(models.path),
    ):
        pass


def test_models_that_load_each_other_are_refused_and_do_not_wait(models):
    for name, other in (("first", "second"), ("second", "first")):
        models.triton(name, "pass", more=f"def initialize(self, args): pb_utils.load_model('{other}')")

    with pytest.raises(Exception, match="is being loaded and asks to load or unload"), serve(models.path):
        pass


def test_only_a_model_of_iterative_sequences_executes_a_request_again(models):
    body = """
    requests[0].set_release_flags(pb_utils.TRITONSERVER_REQUEST_RELEASE_RESCHEDULE)
    return [None]
    """
    models.triton("outer", body)

    with (
        serve(models.path) as client,
        pytest.raises(Exception, match="Request is released with TRITONSERVER_REQUEST_RELEASE_RESCHEDULE"),
    ):
        client["outer"].infer(X=[1])


def test_a_rescheduled_request_has_no_response(folder, batch_of):
    folder.write_triton(
        "requests[0].set_release_flags(pb_utils.TRITONSERVER_REQUEST_RELEASE_RESCHEDULE)\n"
        "return [pb_utils.InferenceResponse([])]"
    )

    (found,) = folder.instance().execute(batch_of({"X": [1]}))

    assert "Expected a None object in the execute function return list for reschduled request" in str(found)


def test_release_flags_that_are_not_known_are_refused(folder, batch_of):
    folder.write_triton("requests[0].set_release_flags(4)")

    with pytest.raises(Exception, match="release flags 4 are not known"):
        folder.instance().execute(batch_of({"X": [1]}))


def test_a_queue_that_is_full_is_told_as_that(models):
    """The kind of an error goes through a model, not only its code."""
    models.triton(
        "outer",
        """
        responses = await asyncio.gather(*(asked("small", value).async_exec() for value in range(50)))
        failed = [response for response in responses if response.has_error()]
        return [pb_utils.InferenceResponse(error=failed[0].error())]
        """,
        definition="async def",
    )
    small = "max_batch_size: 1 dynamic_batching { default_queue_policy { max_queue_size: 1 } }"
    models.triton("small", "return [answer(1) for request in requests]", config=small.replace("max_batch_size: 1", ""))

    with serve(models.path) as client:
        if not client.call(lambda server: server.model_config("small")).dynamic_batching:
            pytest.skip("there is no queue policy")
        with pytest.raises(QueueFullError):
            client["outer"].infer(X=[1])


def test_a_model_that_is_gone_is_told_by_its_state(models):
    models.triton(
        "outer",
        """
        pb_utils.unload_model("double")
        return [pb_utils.InferenceResponse(error=asked("double", 1).exec().error())]
        """,
    )

    with serve(models.path, options=EXPLICIT) as client, pytest.raises(ModelNotReadyError, match="unloaded"):
        client["outer"].infer(X=[1])


def test_outputs_of_a_call_are_numpy_arrays_that_may_be_written_to(models):
    models.triton(
        "outer",
        """
        found = asked("double", 4).exec().output_tensors()[0].as_numpy()
        found += 1
        return [pb_utils.InferenceResponse([pb_utils.Tensor("Y", found)])]
        """,
    )

    with serve(models.path) as client:
        assert y(client["outer"].infer(X=[1])) == 9
        assert np.asarray(y(client["outer"].infer(X=[1]))).item() == 9
