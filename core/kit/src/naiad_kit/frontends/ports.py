"""Validation of ports: refuses two services that are configured with the same one."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from naiad.errors import UsageError
from naiad_kit.frontends.addresses import without_brackets

_ALL = ("", "0.0.0.0", "::")  # noqa: S104 - the addresses that stand for every other


@dataclass(frozen=True, slots=True)
class _Service:
    name: str
    address: str
    port: int

    def clashes_with(self, other: "_Service") -> bool:
        same = self.address == other.address or self.address in _ALL or other.address in _ALL
        return same and self.port == other.port


def refuse_shared_ports(settings: Mapping[str, Any]) -> None:
    """Raise UsageError, with both options, when two services are to listen on one port.

    A service is what has the options `allow-NAME`, `NAME-address` and `NAME-port`, whichever plugin they come with.
    """
    for one, other in combinations(_services(settings), 2):
        if one.clashes_with(other):
            raise UsageError(
                f"The server cannot listen to {other.name.upper()} requests at port {other.port}: {one.name.upper()} "
                f"is to have it; choose another port with --{other.name}-port or --{one.name}-port"
            )


def _services(settings: Mapping[str, Any]) -> Iterator[_Service]:
    for option, port in settings.items():
        name = option.removesuffix("-port")
        if name == option or not (port and settings.get(f"allow-{name}")):
            continue
        address = settings.get(f"{name}-address", "")
        if not address.startswith("unix:"):
            yield _Service(name, without_brackets(address), port)
