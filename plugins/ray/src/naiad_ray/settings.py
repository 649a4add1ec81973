"""Options of `naiad serve` from the values of `naiad-ray.yaml`, and those that a replica on Ray sets itself."""

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any

from naiad.errors import InvalidArgumentError
from naiad.options import Option

_OWN: Mapping[str, str] = {
    "allow-http": "HTTP is served by the proxies of Ray Serve; see the key http",
    "http-address": "write http: {host: …}",
    "http-port": "write http: {port: …}",
    "allow-grpc": "write grpc: null to serve no gRPC",
    "grpc-address": "the proxies of Ray Serve listen on every address",
    "grpc-port": "write grpc: {port: …}",
    "metrics-port": "each replica takes a free port, because several may share a node",
    "allow-client-shm": "a client cannot share memory with replicas that it does not choose, perhaps on another node",
    "model-repository": "write repository: …",
    "load-model": "write models: […] for the group",
}
"""Options that cannot be set for a replica, each with the reason or the next step."""


def options_of(values: Mapping[str, Any], declared: tuple[Option, ...]) -> dict[str, Any]:
    """The values as options have them. Raises InvalidArgumentError for one that is unknown, wrong or not for Ray."""
    by_name = {option.name: option for option in declared}
    options: dict[str, Any] = {}
    for name, value in values.items():
        if name in _OWN:
            raise InvalidArgumentError(f"options: {name} cannot be set on Ray: {_OWN[name]}")
        option = by_name.get(name)
        if option is None:
            near = get_close_matches(name, by_name, n=1)
            hint = f"did you mean {near[0]}?" if near else "naiad serve --help=all lists them"
            raise InvalidArgumentError(f"options: there is no option {name}; {hint}")
        try:
            if option.repeatable:
                options[name] = tuple(
                    option.type(_text(each)) for each in (value if isinstance(value, list) else [value])
                )
            else:
                options[name] = option.type(_text(value))
        except ValueError as error:
            raise InvalidArgumentError(f"options: {name}: {error}") from error
        if option.choices and options[name] not in option.choices:
            raise InvalidArgumentError(f"options: {name} must be one of {', '.join(option.choices)}")
    return options


def replica_options(declared: tuple[Option, ...]) -> dict[str, Any]:
    """The options of a replica, of those that the installed plugins declare: no port of its own but one for metrics."""
    own = {
        "allow-http": False,
        "allow-grpc": False,
        "metrics-port": 0,
    }
    names = {option.name for option in declared}
    return {name: value for name, value in own.items() if name in names}


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
