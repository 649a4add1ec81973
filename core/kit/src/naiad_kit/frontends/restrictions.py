"""Restricted APIs: calls that need a secret header (`--http-restricted-api`, `--grpc-restricted-protocol`)."""

import hmac
import re
from collections.abc import Iterable
from dataclasses import dataclass

from naiad.errors import UsageError

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
"""The names of the groups of calls that can be restricted."""

HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
"""The name of a header: a token of RFC 9110, section 5.6.2."""


@dataclass(frozen=True, slots=True)
class _Key:
    header: str
    lowered: bytes
    value: bytes


class RestrictedApis:
    """Which header each restricted group asks for."""

    def __init__(self, option: str, rules: Iterable[str] = (), header_prefix: str = "") -> None:
        """Rules look like `model-repository,statistics:admin-key=secret`; `option` is where they were written.

        `header_prefix` goes in front of every header's name. Raises UsageError for a bad rule.
        """
        self._option = option
        self._prefix = header_prefix
        self._keys: dict[str, _Key] = {}
        for rule in rules:
            names, key = self._parsed(rule)
            for name in names:
                self._add(name, key)

    def refusal(self, api: str, headers: Iterable[tuple[bytes, bytes]]) -> str:
        """The header that a caller of that group must send and has not; "" lets the call pass.

        The names in `headers` are in lower case.
        """
        key = self._keys.get(api)
        if key is None:
            return ""
        header = next((value for name, value in headers if name == key.lowered), b"")
        return "" if hmac.compare_digest(header.strip(), key.value) else key.header

    def _add(self, name: str, key: _Key) -> None:
        if name not in APIS:
            raise UsageError(f"{self._option}: unknown restricted api '{name}'; there are {', '.join(APIS)}")
        if name in self._keys:
            raise UsageError(f"{self._option}: api '{name}' can not be specified in multiple config groups")
        self._keys[name] = key

    def _parsed(self, rule: str) -> tuple[list[str], _Key]:
        names, colon, key = rule.partition(":")
        header, equals, value = key.partition("=")
        if not (colon and equals and header.strip()):
            raise UsageError(f"{self._option}: '{rule}' is not of the form <api>[,<api>...]:<header>=<value>")
        if not value.strip():
            raise UsageError(
                f"{self._option}: '{rule}' gives the header '{header.strip()}' no value, so every client would pass; "
                "write the secret behind '='"
            )
        message = self._prefix + header.strip()
        if HEADER_NAME.fullmatch(message) is None:
            raise UsageError(
                f"{self._option}: '{rule}' names the header '{header.strip()}', which no client can send; use letters, "
                "digits and '-'"
            )
        return [name.strip() for name in names.split(",")], _Key(
            message, message.lower().encode(), value.strip().encode()
        )
