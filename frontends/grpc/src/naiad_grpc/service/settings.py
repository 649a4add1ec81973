"""RPCs of the trace and logging extensions: read and change settings while the server runs."""

from typing import TYPE_CHECKING, Any

from naiad.errors import InvalidArgumentError
from naiad_grpc.messages import message_class
from naiad_grpc.service.operations import Operation, operation
from naiad_kit.frontends.log_control import LogControl
from naiad_kit.frontends.log_settings import LogSettings, log_settings, update_log_settings
from naiad_kit.tracing import tracing_of

if TYPE_CHECKING:
    from naiad.server import ServerApi


class SettingsRpcs:
    """Trace settings, of the server or of one model, and log settings. A request without settings only reads."""

    def __init__(self, server: "ServerApi") -> None:
        self._server = server
        self._tracing = tracing_of(server)

    def operations(self) -> list[Operation]:
        """Every RPC of this group."""
        return [
            operation("TraceSetting", "trace", self.trace),
            operation("LogSettings", "logging", self.logging),
        ]

    async def trace(self, request: Any) -> Any:
        """The trace settings after the changes; a setting without a value is inherited from the wider scope.

        Raises InvalidArgumentError, UnsupportedError or NotFoundError.
        """
        tracing = self._tracing
        changes = {name: list(setting.value) for name, setting in request.settings.items()}
        settings = tracing.update(changes, request.model_name) if changes else tracing.settings(request.model_name)
        response = message_class("TraceSettingResponse")()
        for name, value in settings.items():
            response.settings[name].value.extend([value] if isinstance(value, str) else value)
        return response

    async def logging(self, request: Any) -> Any:
        """The log settings after the changes. Raises InvalidArgumentError or UnsupportedError."""
        changes = {name: _setting_value(name, setting) for name, setting in request.settings.items()}
        log = self._server.service(LogControl)
        return _log_settings(update_log_settings(log, changes) if changes else log_settings(log))


def _setting_value(name: str, setting: Any) -> bool | int | str:
    kind = setting.WhichOneof("parameter_choice")
    if kind is None:
        raise InvalidArgumentError(
            f"log setting '{name:.80}' has no value; give it bool_param, uint32_param or the like"
        )
    value: bool | int | str = getattr(setting, kind)
    return value


def _log_settings(settings: LogSettings) -> Any:
    response = message_class("LogSettingsResponse")()
    for name, value in settings.items():
        setting = response.settings[name]
        if isinstance(value, bool):
            setting.bool_param = value
        elif isinstance(value, int):
            setting.uint32_param = value
        else:
            setting.string_param = value
    return response
