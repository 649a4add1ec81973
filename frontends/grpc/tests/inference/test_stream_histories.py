"""Any history of a stream: requests of all kinds, answers in any order, and a reader as slow as it likes."""

from unittest.mock import patch

from hypothesis import given, settings
from hypothesis import strategies as st

from naiad.errors import ModelFailedError
from naiad_grpc import streaming
from naiad_grpc.inference import make_inference
from naiad_grpc.messages import message_class

from .conftest import FakeContext, FakeServer
from .teller import final_of, taken

steps = st.one_of(
    st.tuples(st.just("feed"), st.sampled_from(["m", "d", "u"])),
    st.tuples(st.sampled_from(["part", "last", "end", "fail"]), st.integers(0, 2)),
    st.tuples(st.just("take"), st.integers(1, 4)),
)


class History:
    """Does to a stream what the steps say, and notes what must come of it.

    `plain` are the ids of requests with one response, in order; `parts` are whether each message of a decoupled one is
    its last, by its id. `waiting` are the models that still wait when the reader has caught up,
    and `end` says whether the stream is over, and full.
    """

    def __init__(self):
        self.server = FakeServer()
        self.stream = make_inference(self.server).open_stream(FakeContext())
        self.plain, self.parts = [], {}
        self.came = []
        self._open = []
        self._fed = 0

    def do(self, kind, what):
        if kind == "feed":
            self._feed(what)
        elif kind == "take":
            self._take(what)
        elif self._open:
            self._answer(kind, self._open[what % len(self._open)])

    def finish(self):
        self.came += taken(self.stream)
        self.waiting = [call for call in self._open if call.commands[-1:] == ["pause"]]
        self.stream.finish()
        while self._open:
            self._answer("last", self._open[-1])
        self.came += taken(self.stream)
        self.end = self.stream.over, self.stream.full

    def _feed(self, model):
        if self.stream.full:
            return
        self._fed += 1
        request_id = str(self._fed)
        message = message_class("ModelInferRequest")(model_name=model, id=request_id)
        self.stream.feed(message.SerializeToString())
        if model == "d":
            self.parts[request_id] = []
        else:
            self.plain.append(request_id)
        if model != "u":
            self._open.append(self.server.calls[-1])

    def _take(self, count):
        for _ in range(count):
            if (buffers := self.stream.take()) is not None:
                self.came += taken(_Taken(buffers))

    def _answer(self, kind, call):
        decoupled = call.request.model_name == "d"
        final = not (kind == "part" and decoupled)
        if kind == "fail":
            call.deliver(ModelFailedError("broken"))
        elif kind == "end":
            call.end(final=True)
        else:
            call.end(final=final, parameters={"p": 1})
        if final:
            self._open.remove(call)
        if decoupled and kind != "end":
            self.parts[call.request.id].append(final)


class _Taken:
    """One message, as something to take."""

    def __init__(self, buffers):
        self._unsent = [buffers]

    def take(self):
        return self._unsent.pop() if self._unsent else None


@settings(max_examples=60)
@given(st.lists(steps, min_size=20, max_size=60))
def test_every_request_gets_its_responses_in_order_and_no_model_is_left_waiting(given_steps):
    with patch.multiple(streaming, MOST_READY=2, MOST_OPEN=6, MOST_OPEN_BYTES=300):
        history = History()
        for step in given_steps:
            history.do(*step)
        history.finish()

    came = [(message.infer_response.id, final_of(message)) for message in history.came]
    plain = [request_id for request_id, _ in came if request_id not in history.parts]
    parts = {each: [final for request_id, final in came if request_id == each] for each in history.parts}
    assert (plain, parts) == (history.plain, history.parts)
    assert (history.waiting, history.end) == ([], (True, False))
