"""Header forwarding: headers and metadata that become request parameters (`--http-header-forward-pattern`)."""

import re
from collections.abc import Iterable

from naiad.errors import InvalidArgumentError, UsageError
from naiad_kit.frontends.parameters import RESERVED_NAMES, RESERVED_PREFIX


class HeaderForwarding:
    """Picks the headers whose names contain a match of a pattern; case counts only where it starts with `(?-i)`.

    `active` says whether there is a pattern at all; `option` is where it was written. Raises UsageError for a
    pattern that is not a valid regular expression.
    """

    def __init__(self, pattern: str, option: str) -> None:
        self.active = bool(pattern)
        body = pattern.removeprefix("(?-i)")
        try:
            self._pattern = re.compile(body, re.IGNORECASE if body == pattern else 0)
        except re.error as error:
            raise UsageError(f"{option}: '{pattern}' is not a valid regular expression: {error}") from error

    def of(self, headers: Iterable[tuple[str, str]]) -> dict[str, str]:
        """The headers to forward. Raises InvalidArgumentError when one has the name of a reserved parameter."""
        forwarded: dict[str, str] = {}
        for name, value in headers:
            if not (self.active and self._pattern.search(name)):
                continue
            if name in RESERVED_NAMES or name.startswith(RESERVED_PREFIX):
                raise InvalidArgumentError(f"Header '{name}' is reserved for Triton usage and cannot be forwarded.")
            forwarded[name] = value
        return forwarded
