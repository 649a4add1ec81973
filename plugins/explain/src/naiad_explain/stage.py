"""The request stage of explain: follows a request, and adds the timeline to its last response."""

from dataclasses import replace
from functools import partial
from time import monotonic_ns

from naiad.errors import NaiadError
from naiad.extend import Submit
from naiad.server import Deliver, SubmittedRequest
from naiad.types import Request, Response
from naiad_kit.explaining import EXPLAIN, as_text, asks
from naiad_kit.explanation import Explanation
from naiad_kit.timeline import timeline


class ExplainStage:
    """Takes the parameter `naiad_explain` from requests that ask; adds the timeline to the last response if `allowed`.

    The caller's own request stays as it is. A request whose parameter asks for nothing is passed on with it: the
    parameter is the model's then. An error carries no timeline.
    """

    parameter = EXPLAIN
    order = 0
    host_only = False

    def __init__(self, allowed: bool) -> None:
        self._allowed = allowed

    def wrap(self, submit: Submit) -> Submit:
        """The way of requests through this stage."""
        return partial(self._submit, submit)

    @property
    def outstanding(self) -> int:
        """0: the stage holds no request back."""
        return 0

    async def drained(self) -> None:
        """Return at once."""

    def fail_all(self, error: NaiadError) -> None:
        """Nothing is held that could fail."""

    def _submit(self, submit: Submit, request: Request, deliver: Deliver, streams: bool) -> SubmittedRequest:
        if not asks(request.parameters):
            return submit(request, deliver, streams)
        received_ns = request.received_ns or monotonic_ns()
        parameters = {key: value for key, value in request.parameters.items() if key != EXPLAIN}
        if not self._allowed:
            return submit(replace(request, parameters=parameters), deliver, streams)
        explanation = Explanation(request.model_name, request.version, request.trace)
        request = replace(request, parameters=parameters, trace=explanation)
        return submit(request, partial(_deliver_explained, explanation, received_ns, deliver), streams)


def _deliver_explained(
    explanation: Explanation, received_ns: int, deliver: Deliver, outcome: Response | NaiadError
) -> None:
    if isinstance(outcome, Response) and outcome.final:
        text = as_text(timeline(explanation, received_ns, monotonic_ns()))
        # a copy: a stage behind this one, such as a cache, may keep the response and must not keep the timeline
        outcome = replace(outcome, parameters={**outcome.parameters, EXPLAIN: text})
    deliver(outcome)
