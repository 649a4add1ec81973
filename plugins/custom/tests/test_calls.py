"""Functions with a parameter `server`, which call other models."""

import asyncio
from types import SimpleNamespace

import numpy as np
import pytest

from naiad.backend import Batch
from naiad.errors import ConfigError, InvalidArgumentError, NotFoundError, UnavailableError
from naiad.types import Request, Response
from naiad_custom import FP32, INT64, Array, AsyncServer, Server, model
from naiad_custom.declaration import Declaration
from naiad_custom.signature import read_signature
from naiad_tensors.tensors import Tensor
from naiad_testing import serve
from naiad_testing.calls import FakeModels

SYNC = """
@model(outputs="Y")
def outer(X: Array[INT64, 1], server: Server) -> Array[INT64, 1]:
    return server.infer("double", X=X)["Y"] + 1
"""
ASYNC = """
@model(outputs="Y")
async def outer(X: Array[INT64, 1], server: AsyncServer) -> Array[INT64, 1]:
    both = await asyncio.gather(*(server.infer("double", X=X + each) for each in (0, 1)))
    return both[0]["Y"] + both[1]["Y"]
"""
BARE = """
@model(outputs="Y")
def outer(X: Array[INT64, 1], server) -> Array[INT64, 1]:
    return server.infer("double", X=X)["Y"]
"""
STREAMS = """
@model(outputs="Y")
def outer(X: Array[INT64, 1], server: Server) -> Iterator[Array[INT64, 1]]:
    for outputs in server.stream("count", X=X):
        yield outputs["Y"] * 10
"""
ASYNC_STREAMS = """
@model(outputs="Y")
async def outer(X: Array[INT64, 1], server) -> AsyncIterator[Array[INT64, 1]]:
    async for outputs in server.stream("count", X=X):
        yield outputs["Y"] * 10
"""


@pytest.mark.parametrize(("code", "expected"), [(SYNC, 9), (ASYNC, 18), (BARE, 8)])
def test_a_function_asks_another_model(models, code, expected):
    models.native("outer", code)

    with serve(models.path) as client:
        assert client["outer"].infer(X=[4])["Y"].tolist() == [expected]


@pytest.mark.parametrize("code", [STREAMS, ASYNC_STREAMS])
def test_a_function_that_yields_reads_what_another_model_streams(models, code):
    models.native("outer", code)

    with serve(models.path) as client:
        assert [each["Y"].item() for each in client["outer"].stream(X=[4])] == [0, 10, 20, 30]


def test_many_calls_of_an_async_function_wait_at_once(models):
    models.native("outer", ASYNC)

    with serve(models.path) as client:
        answers = client["outer"].infer_all(*({"X": [number]} for number in range(100)))

    assert [answer["Y"].item() for answer in answers] == [4 * number + 2 for number in range(100)]


def test_a_class_asks_other_models_too(models):
    models.native(
        "outer",
        """
        @model(outputs="Y")
        class Outer:
            def load(self, context):
                self.double = lambda value: Server(context.models).infer("double", X=value)["Y"]

            def execute(self, X: Array[INT64, 1], server: Server) -> Array[INT64, 1]:
                return server.infer("double", X=self.double(X))["Y"]
        """,
    )

    with serve(models.path) as client:
        assert client["outer"].infer(X=[4])["Y"].item() == 16


def test_a_request_says_more_than_a_name(models):
    models.triton("looks", "return [answer(1, parameters={'id': requests[0].request_id()}) for each in requests]")
    models.native(
        "outer",
        """
        from naiad import Request

        @model(outputs="Y")
        def outer(X: Array[INT64, 1], server: Server) -> Array[INT64, 1]:
            wrong = Request("double", {}, version=9)
            return server.infer(wrong, X=X)["Y"]
        """,
    )

    with serve(models.path) as client, pytest.raises(NotFoundError, match="version 9 is not found"):
        client["outer"].infer(X=[1])


@pytest.mark.parametrize(("definition", "call"), [("def", "server"), ("async def", "await server")])
def test_the_error_of_a_call_is_the_callers_if_it_is_not_caught(models, definition, call):
    models.native(
        "outer",
        f"""
        @model(outputs="Y")
        {definition} outer(X: Array[INT64, 1], server) -> Array[INT64, 1]:
            return ({call}.infer("double", X=X.astype(np.float32)))["Y"]
        """,
    )

    with serve(models.path) as client, pytest.raises(InvalidArgumentError, match="data-type is 'FP32'"):
        client["outer"].infer(X=[1])


def test_a_function_that_calls_itself_is_reported_at_once(models):
    code = """
    @model(outputs="Y", concurrency=2)
    async def outer(X: Array[INT64, 1], server) -> Array[INT64, 1]:
        return X if X[0] < 1 else (await server.infer("outer", X=X - 1))["Y"] + 1
    """
    models.native("outer", code)

    with serve(models.path) as client:
        assert client["outer"].infer(X=[1])["Y"].item() == 1
        with pytest.raises(UnavailableError, match="ring 'outer' -> 'outer'"):
            client["outer"].infer(X=[2])


@pytest.mark.parametrize(("definition", "wait"), [("def", ""), ("async def", "await ")])
def test_a_function_looks_after_other_models(models, definition, wait):
    models.native(
        "outer",
        f"""
        @model(outputs="Y")
        {definition} outer(X: Array[INT64, 1], server) -> Array[INT64, 1]:
            seen = [{wait}server.ready("double"), {wait}server.ready("double", 7)]
            {wait}server.unload("double")
            seen.append({wait}server.ready("double"))
            {wait}server.load("double")
            seen.append({wait}server.ready("double"))
            return np.array([sum(2**index for index, ready in enumerate(seen) if ready)])
        """,
    )

    with serve(models.path, options={"model-control-mode": "explicit"}) as client:
        assert client["outer"].infer(X=[1])["Y"].item() == 1 + 8


def test_a_call_that_is_no_longer_awaited_is_cancelled():
    models = FakeModels()
    seen = SimpleNamespace(future=None)

    class Held(FakeModels):
        def begin(self, request):
            from concurrent.futures import Future

            seen.future = Future()
            return seen.future

    async def leaves():
        task = asyncio.create_task(AsyncServer(Held()).infer("m", x=[1]))
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    asyncio.run(leaves())

    assert seen.future.cancelled()
    assert models.requests == []


def test_bf16_is_float32_in_the_outputs_and_a_tensor_says_that_it_is_bf16():
    def echo(request):
        return Response("m", 1, "", {"y": request.inputs["x"]})

    server = Server(FakeModels(m=echo))

    outputs = server.infer("m", x=Tensor.of("", np.array([1.5], np.float32), "BF16"))

    assert (outputs["y"].dtype, outputs["y"].tolist()) == (np.float32, [1.5])


def test_the_requests_at_hand_are_those_that_a_call_is_made_for(folder):
    folder.write(
        """
        from naiad_custom import FP32, Array, Server, model

        @model(max_batch_size=4)
        def outer(x: Array[FP32, 1], server: Server) -> Array[FP32, 1]:
            return server.infer("inner", x=x)["y"]
        """
    )
    models = FakeModels(inner=lambda request: Response("inner", 1, "", {"y": request.inputs["x"]}))
    instance = folder.instance(models=models)
    requests = [Request("m", {"x": Tensor.of("x", np.ones((1, 1), np.float32))}) for _ in range(2)]

    instance.execute(Batch(requests, [1, 1]))

    assert models.outer == [requests]
    assert models.requests[0].inputs["x"].shape == (2, 1)


def wrong_sync(x: Array[FP32, 1], server: AsyncServer) -> Array[FP32, 1]:
    return x


async def wrong_async(x: Array[FP32, 1], models: Server) -> Array[FP32, 1]:
    return x


def twice(x: Array[INT64, 1], server: Server, other: Server) -> Array[INT64, 1]:
    return x


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (
            wrong_sync,
            "'server' of 'wrong_sync': a function that is not async cannot use AsyncServer .*write server: Server",
        ),
        (wrong_async, "'models' of 'wrong_async': an async def function cannot use Server .*write models: AsyncServer"),
        (twice, "'other' of 'twice': one parameter for the server is enough"),
    ],
)
def test_the_wrong_kind_of_server_is_an_error_that_says_which_to_write(function, message):
    with pytest.raises(ConfigError, match=message):
        read_signature(function, Declaration())


def test_a_marked_function_is_still_a_function():
    @model
    def asks(x: Array[INT64, 1], server: Server) -> Array[INT64, 1]:
        return server.infer("inner", x=x)["y"]

    models = FakeModels(inner=lambda request: Response("inner", 1, "", {"y": request.inputs["x"]}))

    assert asks(np.array([3]), Server(models)).tolist() == [3]
