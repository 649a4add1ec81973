"""Exposure of a server: a warning where other machines reach a frontend that restricts no API."""

import ipaddress
from collections.abc import Mapping
from typing import Any

_FRONTENDS = (
    ("HTTP", "allow-http", "http-address", "http-restricted-api"),
    ("gRPC", "allow-grpc", "grpc-address", "grpc-restricted-protocol"),
)
"""The frontends that can restrict APIs: their names in messages and the names of their options."""


def exposure(settings: Mapping[str, Any], has_keys: bool = False) -> str:
    """A sentence for the log if a frontend listens beyond this machine without any restricted API, else "".

    `settings` are the values of all options by name; those of frontends that are not installed are missing. A server
    that `has_keys` needs an API key for every call, and has nothing to say.
    """
    if has_keys:
        return ""
    open_ones = [
        (name, address)
        for name, allowed, address, restricted in _FRONTENDS
        if settings.get(allowed) and not settings[restricted] and not _is_local(settings[address])
    ]
    if not open_ones:
        return ""
    where = " and ".join(f"{name} at {settings[address]}" for name, address in open_ones)
    local = " and ".join(f"--{address}=127.0.0.1" for _, address in open_ones)
    may = "load and unload models" if settings["model-control-mode"] == "explicit" else "read and change settings"
    return (
        f"everyone who reaches {where} may use every model and {may}; docs/security.md says how to restrict that, and "
        f"{local} {'keeps' if len(open_ones) == 1 else 'keep'} the server to this machine"
    )


def _is_local(address: str) -> bool:
    if address.startswith("unix:") or address == "localhost":
        return True
    try:
        return ipaddress.ip_address(address.strip("[]")).is_loopback
    except ValueError:  # the name of a host
        return False
