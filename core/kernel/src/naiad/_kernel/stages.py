"""The request stages of one model version, composed once when the version is loaded."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from naiad.errors import InternalError, NaiadError, UnsupportedError
from naiad.explaining import is_asked
from naiad.extend import RequestStage, Submit
from naiad.foreign_errors import describe_error, raise_interrupt
from naiad.server import Deliver, SubmittedRequest
from naiad.types import Request

_logger = logging.getLogger("naiad.model")


@dataclass(frozen=True, slots=True)
class OfferedStages:
    """The stages that plugins offer for a version; `missing` has the parameters of known stages that none offers.

    Each of these with a sentence that says how to get its stage.
    """

    stages: Sequence[RequestStage] = ()
    missing: Mapping[str, str] = field(default_factory=dict)


class VersionStages:
    """The stages around `submit` of one version. For the event loop's thread.

    Requests of clients that have one of `parameters` go through `submit`, all others straight to the version.
    """

    def __init__(self, offered: OfferedStages, submit: Submit) -> None:
        self._stages = sorted(offered.stages, key=lambda stage: stage.order)
        self.parameters = frozenset({stage.parameter for stage in self._stages} | offered.missing.keys())
        for stage in reversed(self._stages):
            submit = stage.wrap(submit)
        for parameter, advice in offered.missing.items():
            submit = partial(_refuse_missing, parameter, advice, submit)
        self.submit: Submit = partial(_guarded, submit)

    @property
    def outstanding(self) -> int:
        """How many requests the stages hold."""
        return sum(stage.outstanding for stage in self._stages)

    async def drained(self) -> None:
        """Return when no stage holds a request."""
        for stage in self._stages:
            await stage.drained()

    def fail_all(self, error: NaiadError) -> None:
        """Fail every request that a stage holds."""
        for stage in self._stages:
            try:
                stage.fail_all(error)
            except BaseException as failure:
                raise_interrupt(failure)
                _logger.exception("a request stage failed to give up its requests")


def _refuse_missing(
    parameter: str, advice: str, submit: Submit, request: Request, deliver: Deliver, streams: bool
) -> SubmittedRequest:
    if is_asked(request.parameters.get(parameter)):
        raise UnsupportedError(f"this server does not offer the request parameter '{parameter}'. {advice}")
    return submit(request, deliver, streams)


def _guarded(submit: Submit, request: Request, deliver: Deliver, streams: bool) -> SubmittedRequest:
    """Submit through the stages, whose code may raise anything."""
    try:
        return submit(request, deliver, streams)
    except NaiadError:
        raise
    except BaseException as error:
        raise_interrupt(error)
        _logger.exception("a request stage of model '%s' failed", request.model_name)
        raise InternalError(
            f"a request stage of model '{request.model_name}' failed: {describe_error(error)}"
        ) from error
