"""A plugin whose caches misbehave: `--cache-config=torture,mode=...` says how."""

from collections.abc import Callable, Mapping, Sequence

from naiad import hookimpl
from naiad.cache import CacheFactory
from naiad_kit.caches import Cache, CachedResponse, CacheReport


class BadCache:
    """Finds a wrong value, raises, exits, or never calls back."""

    shared = False
    largest = float("inf")

    def __init__(self, mode: str) -> None:
        self._mode = mode

    def lookup(self, key: bytes, deliver: Callable[[CachedResponse | None], None]) -> None:
        if self._mode == "wrong":
            deliver("no response")  # type: ignore[arg-type]
        elif self._mode == "raises":
            raise RuntimeError("this cache cannot look anything up")
        elif self._mode == "exits":
            raise SystemExit(3)
        elif self._mode != "hangs":
            deliver(None)

    def insert(self, key: bytes, response: CachedResponse) -> None:
        if self._mode in ("raises", "exits"):
            raise SystemExit(4)

    def report(self) -> CacheReport:
        if self._mode in ("raises", "exits"):
            raise SystemExit(5)
        return CacheReport()

    def close(self) -> None:
        if self._mode in ("raises", "exits"):
            raise SystemExit(6)


class BadCaching:
    """Opens them."""

    name = "torture"

    def open(self, settings: Mapping[str, str]) -> Cache:
        return BadCache(settings["mode"])


@hookimpl
def naiad_caches() -> Sequence[CacheFactory]:
    """The cache `torture`."""
    return [BadCaching()]
