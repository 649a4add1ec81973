"""Routes of the trace extension: read and change the trace settings."""

from collections.abc import Container, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from starlette.requests import Request
from starlette.responses import Response

from naiad_http.codec.documents import as_array, as_string
from naiad_http.routes.documents import read_document
from naiad_http.routes.operations import Operation, as_json
from naiad_kit.tracing import tracing_of

if TYPE_CHECKING:
    from naiad.server import ServerApi

_LISTS = ("trace_level",)


class TraceRoutes:
    """Trace settings of the server and of models."""

    def __init__(self, server: "ServerApi") -> None:
        self._tracing = tracing_of(server)

    def operations(self) -> list[Operation]:
        """Every operation of this group."""
        whole, own = "/v2/trace/setting", "/v2/models/{model}/trace/setting"
        fixed = {501: "only --trace-config sets this"}
        return [
            Operation("GET", whole, "trace", "Trace settings", self.settings),
            Operation("POST", whole, "trace", "Change trace settings", self.update, fixed),
            Operation("GET", own, "trace", "Trace settings of a model", self.settings),
            Operation("POST", own, "trace", "Change trace settings of a model", self.update, fixed),
        ]

    async def settings(self, request: Request) -> Response:
        """The effective settings of the model, or of the server if the path names no model."""
        return as_json(dict(self._tracing.settings(_model(request))))

    async def update(self, request: Request) -> Response:
        """The effective settings after the change."""
        document, model = await read_document(request), _model(request)
        changes = _changes(document, self._tracing.settings(model))
        return as_json(dict(self._tracing.update(changes, model)))


def _model(request: Request) -> str:
    name: str = request.path_params.get("model", "")
    return name


def _changes(document: Mapping[str, Any], known: Container[str]) -> dict[str, Sequence[str] | None]:
    return {name: None if value is None else _values(name, value, known) for name, value in document.items()}


def _values(name: str, value: Any, known: Container[str]) -> Sequence[str]:
    if name not in known:  # the service refuses the name, whatever the value is
        return ()
    if name in _LISTS:
        return [as_string(each, name) for each in as_array(value, name)]
    return [as_string(value, name)]
