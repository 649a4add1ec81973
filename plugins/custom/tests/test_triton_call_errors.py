"""The errors of a TritonPythonModel's calls to other models, and what its own caller gets then."""

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
from naiad_testing import serve

ERRORS = {
    "an unknown model": ('asked("nobody", 1)', NotFoundError, "Model 'nobody' is not ready"),
    "an unknown version": ('asked("double", 1, model_version=9)', NotFoundError, "version 9 is not found"),
    "a wrong input": (
        'pb_utils.InferenceRequest(model_name="double", inputs=[], requested_output_names=[])',
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
    call, kind, message = ERRORS[case]
    models.triton("broken", 'raise ValueError("it broke")')
    models.triton(
        "busy",
        """
        error = pb_utils.TritonError("come back later", pb_utils.TritonError.UNAVAILABLE)
        return [pb_utils.InferenceResponse(error=error)]
        """,
    )
    body = f"""
    response = {how.format(call)}
    assert response.has_error()
    return [pb_utils.InferenceResponse(error=response.error())]
    """

    with pytest.raises(kind, match=message):
        models.outer(body, definition="async def")


def test_the_message_of_an_error_can_be_raised(models):
    body = """
    response = asked("nobody", 1).exec()
    if response.has_error():
        raise pb_utils.TritonModelException(response.error().message())
    """

    with pytest.raises(
        ModelFailedError, match=r"Failed for execute the inference request\. Model 'nobody' is not ready"
    ):
        models.outer(body)


def test_a_queue_that_is_full_is_reported_as_that(models):
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


def test_a_model_that_is_gone_is_reported_by_its_state(models):
    body = """
    pb_utils.unload_model("double")
    return [pb_utils.InferenceResponse(error=asked("double", 1).exec().error())]
    """

    with pytest.raises(ModelNotReadyError, match="unloaded"):
        models.outer(body, options={"model-control-mode": "explicit"})
