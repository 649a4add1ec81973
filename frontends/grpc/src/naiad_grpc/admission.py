"""Admission of calls, for every transport: API keys, restrictions, the limit of calls in flight, and the end."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from naiad_grpc.statuses import Code, RpcError
from naiad_kit.frontends.api_keys import ApiKeys, Refusal, credential_of
from naiad_kit.frontends.connection_limits import open_file_limit
from naiad_kit.frontends.restrictions import RestrictedApis

SHUTTING_DOWN = "GRPC server is shutting down and has stopped accepting new requests."
HEADER_PREFIX = "triton-grpc-protocol-"
_MOST_CONNECTIONS = 16384
_ALWAYS_ANSWERED = frozenset(("health", "metadata"))
"""The groups of RPCs that do not count for the limit of calls in flight, and are answered above it."""


class Admission:
    """Counts the calls in flight, and refuses those that must not begin."""

    def __init__(self, settings: Mapping[str, Any], keys: ApiKeys | None = None) -> None:
        """Raises InvalidArgumentError for a bad rule of `--grpc-restricted-protocol`."""
        restricted: Sequence[str] = settings["grpc-restricted-protocol"]
        self.ending = False
        self._limited = 0
        self._unlimited = 0
        self._most_calls: int = settings["grpc-max-calls"]
        self._restrictions = RestrictedApis("--grpc-restricted-protocol", restricted, HEADER_PREFIX)
        self._keys = keys
        self._restricted = bool(restricted) or keys is not None
        self._idle = asyncio.Event()

    @property
    def in_flight(self) -> int:
        """The number of calls in flight."""
        return self._limited + self._unlimited

    @property
    def is_open(self) -> bool:
        """Whether every call may begin; otherwise see `refusal`."""
        return not (self.ending or self._restricted or self._limited >= self._most_calls)

    def refusal(self, api: str, metadata: Iterable[tuple[bytes, bytes]]) -> RpcError | None:
        """The status that a call of an RPC in the group `api` is refused with; None for one that may begin."""
        if self.ending:
            return RpcError(Code.UNAVAILABLE, SHUTTING_DOWN)
        if self._limited >= self._most_calls and api not in _ALWAYS_ANSWERED:
            return RpcError(
                Code.UNAVAILABLE,
                f"{self._limited} calls are in flight, and --grpc-max-calls allows {self._most_calls}; try again "
                "later, or raise the option",
            )
        metadata = list(metadata)
        refusal = None if self._keys is None else self._keys.refusal(credential_of(metadata), api)
        if refusal is not None:
            return refused_key(refusal)
        required = self._restrictions.refusal(api, metadata)
        if not required:
            return None
        return RpcError(Code.UNAVAILABLE, f"This protocol is restricted, expecting header '{required}'")

    def admit(self, api: str) -> bool:
        """Begin a call if every call may begin; otherwise see `refusal`."""
        if self.ending or self._restricted or self._limited >= self._most_calls:
            return False
        if api in _ALWAYS_ANSWERED:
            self._unlimited += 1
        else:
            self._limited += 1
        return True

    def begin(self, api: str) -> None:
        """A call of an RPC in the group `api` begins."""
        if api in _ALWAYS_ANSWERED:
            self._unlimited += 1
        else:
            self._limited += 1

    def end_call(self, api: str) -> None:
        """A call of an RPC in the group `api` has ended."""
        if api in _ALWAYS_ANSWERED:
            self._unlimited -= 1
        else:
            self._limited -= 1
        if self.ending and not self.in_flight:
            self._idle.set()

    def end(self) -> None:
        """Admit no more calls."""
        self.ending = True

    async def drained(self) -> None:
        """Wait, once it ends, until no call is in flight."""
        if self.in_flight:
            await self._idle.wait()


def refused_key(refusal: Refusal) -> RpcError:
    """The status of a call that the API keys refuse."""
    return RpcError(Code.PERMISSION_DENIED if refusal.is_known else Code.UNAUTHENTICATED, refusal.message)


def default_connections() -> int:
    """The default of `--grpc-max-connections`: a quarter of the limit of open files, the rest for HTTP and models."""
    return min(max(open_file_limit() // 4, 1), _MOST_CONNECTIONS)
