"""A TritonPythonModel that calls other models: exec, async_exec, and decoupled ones."""

import asyncio
import json
import threading
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import numpy as np
import pytest

from naiad.errors import (
    UnavailableError,
)
from naiad_custom import loops
from naiad_testing import serve

from .several import y


def test_exec_gives_the_response_of_another_model(models):
    body = """
    responses = []
    for request in requests:
        response = asked("double", value_of(request.inputs())).exec()
        assert not response.has_error()
        found = pb_utils.get_output_tensor_by_name(response, "Y")
        responses.append(answer(int(found.as_numpy()[0]) + 1))
    return responses
    """

    assert models.outer(body, 4) == 9


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
    body = """
    begun = [asked("double", value).async_exec() for value in (1, 2)]
    return [answer(sum([value_of((await each).output_tensors(), "Y") for each in begun]))]
    """

    assert models.outer(body, definition="async def") == 6


def test_exec_with_decoupled_gives_an_iterator(models):
    body = """
    *responses, last = asked("count", 100).exec(decoupled=True)
    assert (last.output_tensors(), last.has_error()) == ([], False)
    return [answer(sum(value_of(response.output_tensors(), "Y") for response in responses))]
    """

    assert models.outer(body) == 4950


def test_the_iterator_has_next_and_cancel(models):
    models.triton(
        "endless",
        """
        sender = requests[0].get_response_sender()
        while not sender.is_cancelled():
            sender.send(answer(2))
        sender.send(flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
        """,
        decoupled=True,
    )
    models.triton(
        "outer",
        """
        responses = asked("endless", 3).exec(decoupled=True)
        first = value_of(responses.next().output_tensors(), "Y")
        responses.cancel()
        *_, last = responses
        return [answer(10 * first + int(last.error().code()))]
        """,
    )

    with serve(models.path) as client:
        assert y(client["outer"].infer(X=[1])) == 20 + 7  # CANCELLED


@pytest.mark.parametrize("loop", ["for", "async for"])
def test_async_exec_with_decoupled_is_iterated_in_both_ways(models, loop):
    body = f"""
    total = 0
    for responses in await asyncio.gather(*(asked("count", n).async_exec(decoupled=True) for n in (3, 5))):
        {loop} response in responses:
            total += sum(tensor.as_numpy().item() for tensor in response.output_tensors())
    return [answer(total)]
    """

    assert models.outer(body, definition="async def") == 13


def test_a_decoupled_model_sends_on_what_a_decoupled_model_sends(models):
    models.triton(
        "outer",
        """
        for request in requests:
            sender = request.get_response_sender()
            async for response in await asked("count", value_of(request.inputs())).async_exec(decoupled=True):
                if response.output_tensors():
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


def test_a_model_that_calls_itself_on_its_only_instance_gets_an_error_at_once(models):
    body = """
    response = asked("outer", 1).exec()
    return [pb_utils.InferenceResponse(error=response.error())]
    """

    with pytest.raises(UnavailableError, match="ring 'outer' -> 'outer'"):
        models.outer(body)


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
        with pytest.raises(UnavailableError, match="factorial"):
            client["factorial"].infer(X=[6])


def test_the_tensors_of_a_response_are_the_callers_own(models):
    models.triton("same", "return [pb_utils.InferenceResponse(request.inputs()) for request in requests]")
    models.triton(
        "writes",
        """
        array = requests[0].inputs()[0].as_numpy()
        array += 10
        return [pb_utils.InferenceResponse([pb_utils.Tensor("Y", array)])]
        """,
    )
    body = """
    array = np.array([1])
    inputs = [pb_utils.Tensor("X", array)]
    response = pb_utils.InferenceRequest(model_name="writes", inputs=inputs, requested_output_names=["Y"]).exec()
    found = response.output_tensors()[0].as_numpy()
    found += 1
    return [answer(100 * int(array[0]) + int(found[0]))]
    """

    assert models.outer(body) == 112


def test_a_model_finds_an_event_loop_on_its_thread(models):
    models.triton(
        "outer",
        """
        return [answer(self.first + asyncio.get_event_loop().run_until_complete(self.doubled(4)))]
        """,
        more="""
        async def one(self):
            return 1

        async def doubled(self, value):
            return value_of((await asked("double", value).async_exec()).output_tensors(), "Y")

        def initialize(self, args):
            self.first = asyncio.get_event_loop().run_until_complete(self.one())
        """,
    )

    with serve(models.path) as client:
        assert [y(client["outer"].infer(X=[1])) for _ in range(2)] == [9, 9]


@pytest.mark.parametrize(("version", "has_own"), [((3, 13), True), ((3, 14), False)])
def test_a_main_thread_gets_an_event_loop_where_python_makes_none(version, has_own, monkeypatch):
    """Of a thread of the test's: it has no loop, as a main thread since Python 3.14."""

    def gets_one() -> bool:
        loop = loops.loop_of_thread()
        if loop is None:
            return False
        assert asyncio.get_event_loop() is loop
        loop.close()
        return True

    main = SimpleNamespace(current_thread=threading.current_thread, main_thread=threading.current_thread)
    monkeypatch.setattr(loops, "threading", main)
    monkeypatch.setattr(loops, "sys", SimpleNamespace(version_info=version))

    with ThreadPoolExecutor(1) as thread:
        assert thread.submit(gets_one).result() is not has_own


def test_texts_reach_the_called_model_as_bytes(models):
    models.triton(
        "length",
        """
        texts = pb_utils.get_input_tensor_by_name(requests[0], "T").as_numpy()
        return [answer(sum(len(text.decode()) for text in texts))]
        """,
        config='input { name: "T" data_type: TYPE_STRING dims: [-1] }',
    )
    body = """
    texts = pb_utils.Tensor("T", np.array(["\u00e4\u00f6", b"one", 25], dtype=object))
    inputs = [texts, *requests[0].inputs()]
    response = pb_utils.InferenceRequest(model_name="length", inputs=inputs, requested_output_names=["Y"]).exec()
    return [answer(value_of(response.output_tensors(), "Y"))]
    """

    assert models.outer(body) == 7


@pytest.mark.parametrize("part", ["initialize(self, args)", "finalize(self)"])
def test_calls_are_for_execute(models, part, caplog):
    models.triton(
        "outer", "return [answer(1) for request in requests]", more=f"def {part}:\n    asked('double', 1).exec()"
    )

    message = "BLS is only supported during the 'execute' function"
    if "initialize" in part:
        with pytest.raises(Exception, match=message), serve(models.path):
            pass
    else:
        with serve(models.path):
            pass
        assert message in caplog.text


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
