"""Actions of the dashboard: load, unload, log settings and trace settings, for callers with the token of a file."""

import hmac
import json
import logging
from asyncio import to_thread
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from naiad.errors import InvalidArgumentError, TooLargeError, UnsupportedError, UsageError
from naiad_kit.frontends.log_control import LogControl
from naiad_kit.frontends.log_settings import log_settings, update_log_settings
from naiad_kit.tracing import tracing_of

if TYPE_CHECKING:
    from naiad.server import ServerApi

_logger = logging.getLogger("naiad")

_LARGEST = 65536
_SHORTEST = 16
_SCHEME = "bearer"


class ActionToken:
    """The token in `--dashboard-token-file`, which is read for each action, so that a new one counts at once."""

    def __init__(self, path: str) -> None:
        """Raises UsageError for a file that cannot be read, or with a token of less than 16 letters."""
        self._path = Path(path)
        self._read()

    async def accepts(self, headers: Headers) -> bool:
        """Whether a request has the token, as `Authorization: Bearer TOKEN`."""
        scheme, _, token = headers.get("authorization", "").partition(" ")
        expected = await to_thread(self._read)
        same = hmac.compare_digest(token.strip().encode(), expected.encode())
        return same and scheme.lower() == _SCHEME

    def _read(self) -> str:
        try:
            token = self._path.read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else error
            raise UsageError(
                f"--dashboard-token-file: '{self._path}' cannot be read: {reason}; write a token of {_SHORTEST} "
                "letters or more to it, such as from `openssl rand -hex 24`"
            ) from error
        if len(token) < _SHORTEST:
            raise UsageError(
                f"--dashboard-token-file: the token in '{self._path}' has {len(token)} letters, and must have "
                f"{_SHORTEST} at least; `openssl rand -hex 24` makes one"
            )
        return token


class Actions:
    """The actions themselves; `allowed` says whether there is a token at all."""

    def __init__(self, server: "ServerApi") -> None:
        self._server = server
        path = server.settings["dashboard-token-file"]
        self.token = ActionToken(path) if path else None

    @property
    def allowed(self) -> bool:
        """Whether the dashboard may change anything."""
        return self.token is not None

    def settings(self) -> dict[str, Any]:
        """The log settings, and the trace settings where there is a tracing service, as the page shows them."""
        try:
            trace: Mapping[str, Any] | None = tracing_of(self._server).settings()
        except UnsupportedError:
            trace = None
        logs = log_settings(self._server.service(LogControl))
        return {"logging": dict(logs), "trace": None if trace is None else dict(trace)}

    async def load(self, request: Request) -> Response:
        """Load or reload a model from its folder."""
        name = _text(await _document(request), "model")
        _logger.info("the dashboard loads the model '%s'", name)
        await self._server.load(name)
        return JSONResponse({"done": f"The model {name} is loaded."})

    async def unload(self, request: Request) -> Response:
        """Take a model out of service."""
        document = await _document(request)
        name = _text(document, "model")
        _logger.info("the dashboard unloads the model '%s'", name)
        await self._server.unload(name, bool(document.get("unload_dependents")))
        return JSONResponse({"done": f"The model {name} takes no more requests."})

    async def logs(self, request: Request) -> Response:
        """Change log settings, by the names of the logging extension."""
        changes = await _document(request)
        _logger.info("the dashboard changes log settings: %s", changes)
        return JSONResponse({"logging": dict(update_log_settings(self._server.service(LogControl), changes))})

    async def trace(self, request: Request) -> Response:
        """Change trace settings: `settings` by the names of the trace extension, of a `model` or of all."""
        document = await _document(request)
        settings = document.get("settings")
        if not isinstance(settings, dict):
            raise InvalidArgumentError("the trace settings are a JSON object, 'settings'")
        changes = {name: _texts(name, value) for name, value in settings.items()}
        model = _text(document, "model") if document.get("model") else ""
        _logger.info("the dashboard changes trace settings%s: %s", f" of '{model}'" if model else "", changes)
        return JSONResponse({"trace": dict(tracing_of(self._server).update(changes, model))})


async def _document(request: Request) -> dict[str, Any]:
    body = bytearray()
    async for piece in request.stream():
        body += piece
        if len(body) > _LARGEST:
            raise TooLargeError(f"the body of an action takes at most {_LARGEST} bytes")
    try:
        document = json.loads(body) if body else {}
    except (ValueError, RecursionError) as error:
        raise InvalidArgumentError(f"the body is not valid JSON: {error}") from error
    if not isinstance(document, dict):
        raise InvalidArgumentError("the body must be a JSON object")
    return document


def _text(document: Mapping[str, Any], name: str) -> str:
    value = document.get(name)
    if not isinstance(value, str) or not value:
        raise InvalidArgumentError(f"'{name}' must be the name of a model")
    return value


def _texts(name: str, value: Any) -> Sequence[str] | None:
    """The value of a trace setting as texts; None clears it."""
    if value is None:
        return None
    texts = value if isinstance(value, list) else [value]
    if not all(isinstance(each, str) for each in texts):
        raise InvalidArgumentError(f"the trace setting '{name}' must be a string or a list of them")
    return texts
