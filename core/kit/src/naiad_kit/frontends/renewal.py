"""Certificate renewal: reloads certificate files that change while the server runs."""

import asyncio
import logging
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from naiad.errors import UsageError
from naiad_kit.frontends.codec_threads import CodecThreads
from naiad_kit.frontends.tls import read_pair

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

    def renewed(self) -> tuple[bytes, bytes] | None:
        """The certificate and key if the files have changed since the last look and are a pair. Blocks."""
        state = self._state()
        if state == self._seen:
            return None
        self._seen = state
        try:
            return read_pair(self._option, self.certificate, self.key)
        except UsageError as error:
            _logger.warning("the %s certificate stays as it was: %s", self._protocol, error)
            return None

    async def follow(self, use: Callable[[bytes, bytes], None]) -> None:
        """Call `use` on the event loop with each new certificate and key, until the task is cancelled.

        It gets what was checked: the files may have changed again. After an OSError of it the files are read again.
        """
        threads = CodecThreads(f"naiad-{self._option}-certificates", 1)
        try:
            while True:
                await asyncio.sleep(LOOK_SECONDS)
                pair = await threads.run(self.renewed)
                if pair is not None:
                    self._use(use, *pair)
        finally:
            threads.close()

    def _use(self, use: Callable[[bytes, bytes], None], certificate: bytes, key: bytes) -> None:
        try:
            use(certificate, key)
        except OSError as error:  # as for want of a file descriptor
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
