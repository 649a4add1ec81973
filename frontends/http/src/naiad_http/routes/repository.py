"""Routes of the model repository extension: index, load and unload."""

from functools import partial
from typing import TYPE_CHECKING

from starlette.requests import Request
from starlette.responses import Response

from naiad.errors import InvalidArgumentError, UnsupportedError
from naiad.reports import IndexEntry
from naiad_http.bodies import read_body
from naiad_http.codec.documents import as_boolean, as_object
from naiad_http.codec.load_requests import beside_parameters, read_load_request
from naiad_http.codec.requests import LARGE_BYTES
from naiad_http.routes.documents import read_document
from naiad_http.routes.operations import Operation, as_json
from naiad_kit.frontends.codec_threads import CodecThreads

if TYPE_CHECKING:
    from naiad.server import ServerApi


class RepositoryRoutes:
    """Index, load and unload; a load request has at most `limit` bytes, and `threads` decode large ones."""

    def __init__(self, server: "ServerApi", limit: int, threads: CodecThreads) -> None:
        self._server = server
        self._limit = limit
        self._threads = threads

    def operations(self) -> list[Operation]:
        """Every operation of this group; with the name of a repository only the index is supported."""
        api = "model-repository"
        failed = {400: "the load failed, and an earlier generation serves on"}
        named = "/v2/repository/{repository}"
        return [
            Operation("POST", "/v2/repository/index", api, "All models, versions and states", self.index),
            Operation("POST", f"{named}/index", api, "All models, versions and states", self.index),
            Operation("POST", "/v2/repository/models/{model:text}/load", api, "Load a model", self.load, failed),
            Operation("POST", "/v2/repository/models/{model:text}/unload", api, "Unload a model", self.unload),
            Operation("POST", f"{named}/models/{{model}}/load", api, "Not supported", self.refuse_repository),
            Operation("POST", f"{named}/models/{{model}}/unload", api, "Not supported", self.refuse_repository),
        ]

    async def index(self, request: Request) -> Response:
        """The state of every model and version."""
        document = await read_document(request)
        ready = as_boolean(document["ready"], "ready") if "ready" in document else False
        return as_json([_entry(each) for each in await self._server.fresh_index(ready)])

    async def load(self, request: Request) -> Response:
        """An empty 200 when the model is READY."""
        body = await read_body(request.receive, self._limit)
        if len(body) > LARGE_BYTES:
            load = await self._threads.run(partial(read_load_request, body))
        else:
            load = read_load_request(body)
        del body
        await self._server.load(request.path_params["model"], load.config, load.files, trusted=False)
        return Response()

    async def unload(self, request: Request) -> Response:
        """An empty 200 when the model takes no more requests."""
        document = await read_document(request)
        if "unload_dependents" in document:
            raise beside_parameters("unload_dependents")
        parameters = as_object(document.get("parameters", {}), "parameters")
        for key in parameters:
            if key != "unload_dependents":
                raise InvalidArgumentError(f"unrecognized unload parameter '{key[:80]}'; there is 'unload_dependents'")
        dependents = as_boolean(parameters.get("unload_dependents", False), "unload_dependents")
        await self._server.unload(request.path_params["model"], dependents)
        return Response()

    async def refuse_repository(self, _request: Request) -> Response:
        """Refuse a repository name: models are addressed by their name alone."""
        raise UnsupportedError("'repository_name' specification is not supported; leave it out of the URL")


def _entry(entry: IndexEntry) -> dict[str, str]:
    document = {"name": entry.name}
    if entry.version:
        document["version"] = str(entry.version)
    if entry.state:
        document["state"] = entry.state
    if entry.reason:
        document["reason"] = entry.reason
    return document
