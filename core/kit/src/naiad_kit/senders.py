"""Sender of responses that nobody awaits: plugins hand it to a model that sends all the same."""

from naiad.backend import Reply
from naiad.errors import NaiadError


class NullSender:
    """A `naiad.batch.Sender` that drops all responses.

    It is for a request that has ended, and for one without a caller.
    """

    def send(self, reply: Reply | NaiadError | None, final: bool = False) -> bool:
        """Send nothing; False, as no caller awaits it."""
        return False

    def post(self, reply: Reply | NaiadError | None, final: bool = False) -> None:
        """Send nothing; there is always room for what is dropped."""

    def is_cancelled(self) -> bool:
        """True, as no caller awaits a response."""
        return True
