"""Options of the response cache: which cache backend to open, with which settings."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from naiad.errors import UsageError
from naiad.options import Option


def _byte_size(text: str) -> int:
    value = int(text)
    if value < 0:
        raise ValueError(f"'{text}' is not a number of bytes; write 0 or more")
    return value


CACHE_OPTIONS: tuple[Option, ...] = (
    Option(
        "cache-config",
        (),
        "the response cache and its settings, as local,size=1048576; several with the same cache add up",
        metavar="CACHE,KEY=VALUE",
        repeatable=True,
    ),
    Option("response-cache-byte-size", 0, "the older form of --cache-config local,size=N", _byte_size, "N"),
)
"""Every option of the cache."""


@dataclass(frozen=True, slots=True)
class ChosenCache:
    """The cache that is asked for, and its settings."""

    name: str
    settings: Mapping[str, str]


def chosen_cache(settings: Mapping[str, Any]) -> ChosenCache | None:
    """The cache that the options name, None for none. Raises UsageError for two, and for invalid texts."""
    texts: Sequence[str] = settings["cache-config"]
    legacy: int = settings["response-cache-byte-size"]
    if legacy and texts:
        raise UsageError(
            "--response-cache-byte-size and --cache-config are both given; keep --cache-config, the other is its older "
            "form"
        )
    if legacy:
        return ChosenCache("local", {"size": str(legacy)})
    chosen: dict[str, dict[str, str]] = {}
    for text in texts:
        name, *pieces = text.split(",")
        if not name or "=" in name:
            raise UsageError("--cache-config must begin with a cache's name, as in local,size=1048576")
        chosen.setdefault(name, {}).update(map(_setting, pieces))
    if len(chosen) > 1:
        raise UsageError(
            f"a server has one response cache, and --cache-config names {len(chosen)}: {', '.join(chosen)}; keep one"
        )
    return next((ChosenCache(*each) for each in chosen.items()), None)


def _setting(piece: str) -> tuple[str, str]:
    key, equals, value = piece.partition("=")
    if not equals or not key:  # what is wrong is not repeated: it may be a part of a password
        raise UsageError("--cache-config must be CACHE,KEY=VALUE[,KEY=VALUE]..., and a value has no comma")
    return key, value
