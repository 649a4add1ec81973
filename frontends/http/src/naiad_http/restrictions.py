"""APIs that a caller may use only with the right header (`--http-restricted-api`)."""

import hmac
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from naiad.errors import InvalidArgumentError
from naiad_http.statuses import HttpError

APIS = (
    "health",
    "metadata",
    "inference",
    "shared-memory",
    "model-config",
    "model-repository",
    "statistics",
    "trace",
    "logging",
)
"""The names of the groups of routes that can be restricted."""


@dataclass(frozen=True, slots=True)
class _Key:
    header: str
    value: bytes


class Restrictions:
    """Which header each restricted API asks for."""

    def __init__(self, rules: Iterable[str] = ()) -> None:
        """Rules look like `model-repository,statistics:admin-key=secret`; raises InvalidArgumentError for a bad one."""
        self._keys: dict[str, _Key] = {}
        for rule in rules:
            names, key = _parsed(rule)
            for name in names:
                self._add(name, key)

    def check(self, api: str, headers: Sequence[tuple[bytes, bytes]]) -> None:
        """Let the request pass or raise HttpError 403; the names in `headers` are in lower case."""
        key = self._keys.get(api)
        if key is None:
            return
        wanted = key.header.lower().encode()
        given = next((value for name, value in headers if name == wanted), b"")
        if not hmac.compare_digest(given.strip(), key.value):
            raise HttpError(403, f"This API is restricted, expecting header '{key.header}'")

    def _add(self, name: str, key: _Key) -> None:
        if name not in APIS:
            raise InvalidArgumentError(
                f"--http-restricted-api: unknown restricted api '{name}'; there are {', '.join(APIS)}"
            )
        if name in self._keys:
            raise InvalidArgumentError(
                f"--http-restricted-api: api '{name}' can not be specified in multiple config groups"
            )
        self._keys[name] = key


def _parsed(rule: str) -> tuple[list[str], _Key]:
    names, colon, key = rule.partition(":")
    header, equals, value = key.partition("=")
    if not (colon and equals and header.strip()):
        raise InvalidArgumentError(
            f"--http-restricted-api: '{rule}' is not of the form <api>[,<api>...]:<header>=<value>"
        )
    return [name.strip() for name in names.split(",")], _Key(header.strip(), value.strip().encode())
