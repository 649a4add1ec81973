"""Certificate renewal: reloads certificate files that change while the server runs."""

import asyncio
import logging
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from naiad.errors import UsageError
from naiad_kit.frontends.codec_threads import CodecThreads
from naiad_kit.frontends.tls import check_pair

_logger = logging.getLogger("naiad")

LOOK_SECONDS = 10.0
"""How often the files are looked at; network mounts do not notify of changed files."""


class CertificateRenewal:
    """Follows the certificate and key of one protocol ("HTTP", "gRPC").

    Files that do not belong together, as between the writing of one and of the other, are not used: the earlier pair
    stays in use, with a warning in the log, until the files change again.
    """

    def __init__(self, settings: Mapping[str, Any], protocol: str) -> None:
        self._option = protocol.lower()
        self._protocol = protocol
        self.certificate: str = settings[f"{self._option}-server-cert"]
        self.key: str = settings[f"{self._option}-server-key"]
        self._seen = self._state()

    def renewed(self) -> bool:
        """Whether the files are others than at the last look and make a pair. Blocks while it reads them."""
        state = self._state()
        if state == self._seen:
            return False
        self._seen = state
        try:
            check_pair(self._option, self.certificate, self.key)
        except UsageError as error:
            _logger.warning("the %s certificate stays as it was: %s", self._protocol, error)
            return False
        return True

    async def follow(self, use: Callable[[], None]) -> None:
        """Call `use` on the event loop whenever there is a new pair, until the task is cancelled.

        `use` reads the files; it may raise OSError or UsageError where they have changed again meanwhile.
        """
        threads = CodecThreads(f"naiad-{self._option}-certificates", 1)
        try:
            while True:
                await asyncio.sleep(LOOK_SECONDS)
                if await threads.run(self.renewed):
                    self._use(use)
        finally:
            threads.close()

    def _use(self, use: Callable[[], None]) -> None:
        try:
            use()
        except (OSError, UsageError) as error:  # the files have changed again since they were read
            self._seen = ()
            _logger.warning("the %s certificate stays as it was: %s", self._protocol, error)
        else:
            _logger.info("%s serves with the renewed certificate '%s'", self._protocol, self.certificate)

    def _state(self) -> tuple[tuple[int, int, int] | None, ...]:
        """Size, time and inode of both files; None for one that is not there."""
        return tuple(state_of(path) for path in (self.certificate, self.key))


def state_of(path: str) -> tuple[int, int, int] | None:
    """Size, time and inode of a file, which change with it; None for one that is not there."""
    try:
        status = Path(path).stat()
    except OSError:
        return None
    return status.st_size, status.st_mtime_ns, status.st_ino
