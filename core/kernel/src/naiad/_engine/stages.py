"""The request stages of one model version, composed once when the version is loaded."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from time import monotonic
from typing import cast

from naiad._engine.call import Call
from naiad.errors import NaiadError, UnsupportedError
from naiad.extend import RequestStage, Submit, requests_stage
from naiad.foreign_errors import contained, logged
from naiad.scheduler import Ticket
from naiad.server import Deliver, SubmittedRequest
from naiad.types import Request

_SubmitCall = Callable[[Request, Deliver, bool], Call]
"""A Submit whose requests are all calls of the kernel: stages give back nothing else."""


@dataclass(frozen=True, slots=True)
class OfferedStages:
    """The stages that plugins offer for a version; `missing` says how to get those of other known parameters."""

    stages: Sequence[RequestStage] = ()
    missing: Mapping[str, str] = field(default_factory=dict)


class VersionStages:
    """The stages around one version, composed. For the event loop's thread.

    Requests of clients that have one of `parameters` go through `submit`, all others straight to the version's own
    `submit`. That one checks them and passes them to `checked`, the way through the stages without a parameter to its
    `enqueue`; None without such stages. `host_only` says that one of these reads tensors.
    """

    def __init__(self, offered: OfferedStages, submit: Submit, enqueue: Submit) -> None:
        self._stages = sorted(offered.stages, key=lambda stage: stage.order)
        asking = [stage for stage in self._stages if stage.parameter]
        checked = [stage for stage in self._stages if not stage.parameter]
        self.parameters = frozenset({stage.parameter for stage in asking} | offered.missing.keys())
        for parameter, advice in offered.missing.items():
            submit = partial(_refuse_missing, parameter, advice, submit)
        self.submit: Submit = _through(asking, submit)
        self.checked: _SubmitCall | None = cast("_SubmitCall", _through(checked, enqueue)) if checked else None
        self.host_only = any(stage.host_only for stage in checked)

    @property
    def outstanding(self) -> int:
        """How many requests the stages hold."""
        count = 0
        for stage in self._stages:
            with logged("counting the requests of a request stage"):
                count += stage.outstanding
        return count

    async def drained(self) -> None:
        """Return when no stage holds a request."""
        for stage in self._stages:
            with logged("draining a request stage"):
                await stage.drained()

    def fail_all(self, error: NaiadError) -> None:
        """Fail every request that a stage holds."""
        for stage in self._stages:
            with logged("failing the requests of a request stage"):
                stage.fail_all(error)


def hold(request: Request, deliver: Deliver, cancelled: Callable[[], None]) -> Call:
    """The result of `submit` for a request that a stage keeps: see `StageContext`."""
    return Call(lambda _: cancelled(), request, deliver, Ticket(0, now := monotonic()), now)


def _through(stages: Sequence[RequestStage], submit: Submit) -> Submit:
    """The way through the stages, the first one first."""
    if not stages:
        return submit
    for stage in reversed(stages):
        submit = stage.wrap(submit)
    return partial(_guarded, submit)


def _refuse_missing(
    parameter: str, advice: str, submit: Submit, request: Request, deliver: Deliver, streams: bool
) -> SubmittedRequest:
    if requests_stage(request.parameters.get(parameter)):
        raise UnsupportedError(f"this server does not offer the request parameter '{parameter}'. {advice}")
    return submit(request, deliver, streams)


def _guarded(submit: Submit, request: Request, deliver: Deliver, streams: bool) -> SubmittedRequest:
    """Submit through the stages, whose code may raise anything."""
    with contained(f"a request stage of model '{request.model_name}'", model=request.model_name):
        return submit(request, deliver, streams)
