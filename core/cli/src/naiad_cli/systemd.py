"""Notifications to systemd about a service of `Type=notify`: ready, stopping, and what it does (`sd_notify(3)`)."""

import logging
import socket
from collections.abc import MutableMapping

_logger = logging.getLogger("naiad")

_VARIABLE = "NOTIFY_SOCKET"
_SECONDS = 1.0
"""systemd reads at once; a socket that is full does not hold the server up for longer."""

_LONGEST = 500
"""Characters of a status: systemd drops a datagram of more than 4096 bytes."""


class ServiceNotifier:
    """Sends the state of the server to a socket of datagrams; without an address it does nothing.

    The address is a path, or behind `@` the name of an abstract socket.
    """

    def __init__(self, address: str) -> None:
        self._address = f"\0{address[1:]}" if address.startswith("@") else address
        self._status = ""
        self._failed = False

    @property
    def is_used(self) -> bool:
        """Whether there is a socket to send to."""
        return bool(self._address)

    def status(self, text: str) -> None:
        """Say in one line what the server does; `systemctl status` shows it. The line before is not sent again."""
        self._send(text)

    def ready(self, text: str) -> None:
        """The start is over: units that are ordered after the server start now."""
        self._send(text, "READY=1")

    def stopping(self, text: str) -> None:
        """The server begins to stop."""
        self._send(text, "STOPPING=1")

    def _send(self, status: str, *states: str) -> None:
        line = " ".join(status.split())[:_LONGEST]  # a line break would begin another assignment
        if not self._address or (line == self._status and not states):
            return
        self._status = line
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
                sender.settimeout(_SECONDS)
                sender.sendto("\n".join((*states, f"STATUS={line}")).encode(errors="replace"), self._address)
        except OSError as error:
            if not self._failed:
                _logger.warning("systemd cannot be notified at '%s' (%s): %s", self._address, _VARIABLE, error)
            self._failed = True


def take_notifier(environment: MutableMapping[str, str]) -> ServiceNotifier:
    """The notifier of this process. The variable is removed: processes of models do not speak for the server."""
    address = environment.pop(_VARIABLE, "")
    return ServiceNotifier(address if address.startswith(("/", "@")) else "")
