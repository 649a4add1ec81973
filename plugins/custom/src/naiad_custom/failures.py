"""Errors of user code: the caller gets type and message, the log the traceback."""

from naiad.backend import ModelContext, Placement
from naiad.errors import ModelFailedError, NaiadError
from naiad.types import Request
from naiad_config.user_code import describe_failure, from_user_code
from naiad_custom.hints import explain_read_only


class Failures:
    """Turns exceptions of one instance into errors for its callers."""

    def __init__(self, context: ModelContext, placement: Placement) -> None:
        self._logger = context.logger
        self._name = placement.name

    def of(self, error: BaseException, request: Request) -> NaiadError:
        """A NaiadError as it is; any other error as a ModelFailedError with type and text, after logging it."""
        if isinstance(error, NaiadError):
            return error
        if isinstance(error, ValueError):
            explain_read_only(error)
        named = f" '{request.id}'" if request.id else ""
        self._logger.error("instance '%s' failed a request%s", self._name, named, exc_info=from_user_code(error))
        failure = ModelFailedError(f"instance '{self._name}' failed: {describe_failure(error)}")
        failure.__cause__, failure.logged = error, True
        return failure
