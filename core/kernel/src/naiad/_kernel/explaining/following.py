"""Following a request that asks for an explanation, from the server's door to its last response."""

from dataclasses import replace
from time import monotonic_ns

from naiad._kernel.answers import Outcome
from naiad._kernel.call import Deliver
from naiad._kernel.explaining.explanation import Explanation
from naiad._kernel.explaining.timeline import timeline
from naiad.explaining import EXPLAIN, as_text, asks
from naiad.types import Request, Response


def explained(request: Request, deliver: Deliver, allowed: bool) -> tuple[Request, Deliver]:
    """The request without the parameter `explain`, and a way of its outcomes that adds the explanation to the last.

    The caller's own request is left as it is, and so is one whose parameter asks for nothing: it is the model's then.
    An error carries no explanation, and nothing does when it is not `allowed`.
    """
    if not asks(request.parameters):
        return request, deliver
    received_ns = request.received_ns or monotonic_ns()
    parameters = {key: value for key, value in request.parameters.items() if key != EXPLAIN}
    if not allowed:
        return replace(request, parameters=parameters), deliver
    explanation = Explanation(request.model_name, request.version, request.trace)

    def deliver_explained(outcome: Outcome) -> None:
        if isinstance(outcome, Response) and outcome.final:
            told = as_text(timeline(explanation, received_ns, monotonic_ns()))
            # a copy: whoever keeps the response for others, as a cache does, must not keep this
            outcome = replace(outcome, parameters={**outcome.parameters, EXPLAIN: told})
        deliver(outcome)

    return replace(request, parameters=parameters, trace=explanation), deliver_explained
