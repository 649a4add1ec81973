"""The model repository extension: what there is, and loading and unloading by request."""

import base64
import binascii
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from starlette.requests import Request
from starlette.responses import Response

from naiad.errors import InvalidArgumentError, UnsupportedError
from naiad.reports import IndexEntry
from naiad_http.bodies import read_body
from naiad_http.codec.documents import as_boolean, as_object, as_string, parse
from naiad_http.routes.operations import Operation, as_json

if TYPE_CHECKING:
    from naiad import Server

_FILE = "file:"


class RepositoryRoutes:
    """Index, load and unload; `limit` bounds the body of a request in bytes."""

    def __init__(self, server: "Server", limit: int) -> None:
        self._server = server
        self._limit = limit

    def operations(self) -> list[Operation]:
        """Every operation of this group; with the name of a repository only the index can be asked for."""
        api = "model-repository"
        failed = {400: "the load failed, and an earlier generation serves on"}
        named = "/v2/repository/{repository}"
        return [
            Operation("POST", "/v2/repository/index", api, "All models, versions and states", self.index),
            Operation("POST", f"{named}/index", api, "All models, versions and states", self.index),
            Operation("POST", "/v2/repository/models/{model:path}/load", api, "Load a model", self.load, failed),
            Operation("POST", "/v2/repository/models/{model:path}/unload", api, "Unload a model", self.unload),
            Operation("POST", f"{named}/models/{{model}}/load", api, "Not supported", self.refuse_repository),
            Operation("POST", f"{named}/models/{{model}}/unload", api, "Not supported", self.refuse_repository),
        ]

    async def index(self, request: Request) -> Response:
        """The state of every model and version."""
        given = await self._document(request)
        ready = as_boolean(given["ready"], "ready") if "ready" in given else False
        return as_json([_entry(each) for each in self._server.index(ready)])

    async def load(self, request: Request) -> Response:
        """An empty 200 when the model is READY."""
        given = as_object((await self._document(request)).get("parameters", {}), "parameters")
        config = ""
        files: dict[str, bytes] = {}
        for key, value in given.items():
            if key == "config":
                config = as_string(value, key)
            elif key.startswith(_FILE):
                files[key.removeprefix(_FILE)] = _content(as_string(value, key), key)
            else:
                raise InvalidArgumentError(
                    f"unrecognized load parameter '{key[:80]}'; there are 'config' and 'file:<version>/<file name>'"
                )
        await self._server.load(request.path_params["model"], config, files)
        return Response()

    async def unload(self, request: Request) -> Response:
        """An empty 200 when the model takes no more requests."""
        given = as_object((await self._document(request)).get("parameters", {}), "parameters")
        for key in given:
            if key != "unload_dependents":
                raise InvalidArgumentError(f"unrecognized unload parameter '{key[:80]}'; there is 'unload_dependents'")
        dependents = as_boolean(given.get("unload_dependents", False), "unload_dependents")
        await self._server.unload(request.path_params["model"], dependents)
        return Response()

    async def refuse_repository(self, _request: Request) -> Response:
        """A model is found by its name, whatever repository it lies in."""
        raise UnsupportedError("'repository_name' specification is not supported; leave it out of the URL")

    async def _document(self, request: Request) -> Mapping[str, Any]:
        body = await read_body(request.receive, self._limit)
        return as_object(parse(body), "request") if body.strip() else {}


def _entry(entry: IndexEntry) -> dict[str, str]:
    told = {"name": entry.name}
    if entry.version:
        told["version"] = str(entry.version)
    if entry.state:
        told["state"] = entry.state
    if entry.reason:
        told["reason"] = entry.reason
    return told


def _content(text: str, key: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise InvalidArgumentError(f"load parameter '{key[:80]}' is no base64: {error}") from error
