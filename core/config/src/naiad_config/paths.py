"""Key paths in a configuration, as `input[0].dims[1]` and `parameters["k"].string_value`, and their positions."""

from collections.abc import Mapping

from naiad_config.lexer import Position


def member(path: str, name: str) -> str:
    """The path of a field of the message at `path`."""
    return f"{path}.{name}" if path else name


def element(path: str, index: int) -> str:
    """The path of an element of the list at `path`."""
    return f"{path}[{index}]"


def entry(path: str, key: str | int) -> str:
    """The path of an entry of the map at `path`."""
    return f'{path}["{key}"]' if isinstance(key, str) else f"{path}[{key}]"


def position_of(path: str, positions: Mapping[str, Position]) -> Position:
    """Where the key at `path` stands, or the nearest key around it when it is absent; (0, 0) when there is no text."""
    if not positions:  # a key in JSON may be a megabyte of dots, each the end of a path around it
        return 0, 0
    while path not in positions:
        if not path:
            return 0, 0
        path = path[: max(path.rfind("."), path.rfind("["), 0)]
    return positions[path]
