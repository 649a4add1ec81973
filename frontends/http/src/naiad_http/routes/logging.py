"""Routes of the logging extension: read and change the log settings."""

from typing import TYPE_CHECKING

from starlette.requests import Request
from starlette.responses import Response

from naiad_http.routes.documents import read_document
from naiad_http.routes.operations import Operation, as_json
from naiad_kit.frontends.log_control import LogControl
from naiad_kit.frontends.log_settings import log_settings, update_log_settings

if TYPE_CHECKING:
    from naiad.server import ServerApi


class LoggingRoutes:
    """Log settings."""

    def __init__(self, server: "ServerApi") -> None:
        self._server = server

    def operations(self) -> list[Operation]:
        """Every operation of this group."""
        fixed = {501: "only --log-file sets this"}
        return [
            Operation("GET", "/v2/logging", "logging", "Log settings", self.settings),
            Operation("POST", "/v2/logging", "logging", "Change log settings", self.update, fixed),
        ]

    async def settings(self, _request: Request) -> Response:
        """All settings."""
        return as_json(dict(log_settings(self._server.service(LogControl))))

    async def update(self, request: Request) -> Response:
        """All settings after the change."""
        changes = await read_document(request)
        return as_json(dict(update_log_settings(self._server.service(LogControl), changes)))
