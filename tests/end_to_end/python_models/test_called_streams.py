"""The responses of a decoupled model to the model that calls it: the last one, and cancellation."""

from .conftest import Ask
from .writing import DECOUPLED, PythonModel

_CANCELLED = 'pb_utils.InferenceResponse(error=pb_utils.TritonError("stopped", pb_utils.TritonError.CANCELLED))'
_CALL = """
responses = asked("{model}", {count}).exec(decoupled=True)
seen = []
for response in responses:
    seen.append(int(response.error().code()) + 100 if response.has_error() else len(response.output_tensors()))
    if {cancel} and len(seen) == 1:
        responses.cancel()
return [answer(int("".join(map(str, seen))))]
"""


def calling(model: str, count: int, cancel: bool = False) -> PythonModel:
    """Answers with the number of outputs of each response in turn, and 100 more than the code of an error."""
    return PythonModel(_CALL.format(model=model, count=count, cancel=cancel))


def sending(loop: str) -> PythonModel:
    """Sends responses as that loop says, and then the final flag alone."""
    lines = "".join(f"    {line}\n" for line in loop.strip().splitlines())
    body = f"for request in requests:\n    sender = request.get_response_sender()\n{lines}    sender.send(flags=FINAL)"
    return PythonModel(body, config=DECOUPLED)


MODELS = {
    "count": sending("for number in range(value(request.inputs())):\n    sender.send(answer(number))"),
    "last_with_flag": PythonModel(
        """
        for request in requests:
            sender, last = request.get_response_sender(), value(request.inputs()) - 1
            for number in range(last + 1):
                sender.send(answer(number), FINAL if number == last else 0)
        """,
        config=DECOUPLED,
    ),
    "endless": sending("while not sender.is_cancelled():\n    sender.send(answer(1))\n    time.sleep(0.001)"),
    "endless_saying_so": PythonModel(
        f"""
        for request in requests:
            sender = request.get_response_sender()
            while not sender.is_cancelled():
                sender.send(answer(1))
                time.sleep(0.001)
            sender.send({_CANCELLED}, FINAL)
        """,
        config=DECOUPLED,
    ),
    "going_on": PythonModel(
        """
        for request in requests:
            sender = request.get_response_sender()
            sender.send(answer(0))
            while not sender.is_cancelled():
                time.sleep(0.001)
            sender.send(answer(1))
            sender.send(answer(2), FINAL)
        """,
        config=DECOUPLED,
    ),
    "three": calling("count", 3),
    "none": calling("count", 0),
    "three_with_flag": calling("last_with_flag", 3),
    "stops": calling("endless", 1, cancel=True),
    "stops_saying_so": calling("endless_saying_so", 1, cancel=True),
    "goes_on": calling("going_on", 1, cancel=True),
}


def test_the_empty_last_response_of_a_called_model_is_yielded(ask: Ask) -> None:
    assert (ask("three", 1), ask("none", 1)) == (1110, 0)


def test_a_final_flag_with_the_last_response_yields_no_other(ask: Ask) -> None:
    assert ask("three_with_flag", 1) == 111


def test_a_cancelled_iterator_ends_with_an_error_of_that_code(ask: Ask) -> None:
    for model in ("stops", "stops_saying_so"):
        seen = str(ask(model, 1))
        assert seen.startswith("1")
        assert seen.endswith("107")


def test_a_cancelled_model_that_goes_on_is_read_to_its_end(ask: Ask) -> None:
    assert ask("goes_on", 1) == 111
