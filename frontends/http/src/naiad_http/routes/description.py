"""Routes that describe the server: the page at `/`, OpenAPI of the server and of each model, and their pages."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from naiad_http.api_pages import PAGE_HEADERS, api_page, root_page
from naiad_http.model_openapi import describe_model
from naiad_http.routes.operations import Operation, as_json, model_of
from naiad_kit.frontends.dashboard_page import dashboard_url

if TYPE_CHECKING:
    from naiad.server import ServerApi


class DescriptionRoutes:
    """Descriptions for people and programs; `document` has that of all operations."""

    def __init__(self, server: "ServerApi", document: Callable[[], Mapping[str, Any]]) -> None:
        self._server = server
        self._document = document

    def operations(self) -> list[Operation]:
        """Every operation of this group."""
        version = "/v2/models/{model}/versions/{version}/openapi.json"
        return [
            Operation("GET", "/", "metadata", "Where the dashboard and the API are described", self.root),
            Operation("GET", "/openapi.json", "metadata", "This description", self.openapi),
            Operation("GET", "/v2/models/{model}/openapi.json", "metadata", "OpenAPI of a model", self.model_openapi),
            Operation("GET", version, "metadata", "OpenAPI of a version", self.model_openapi),
            Operation("GET", "/docs", "metadata", "This description as a page", self.page),
            Operation("GET", "/docs/{model}", "metadata", "The description of a model as a page", self.model_page),
        ]

    async def root(self, request: Request) -> Response:
        """A page for browsers, which accept HTML, and JSON for all others."""
        metadata = self._server.metadata()
        dashboard = dashboard_url(self._server, request.url.hostname or "localhost")
        if "text/html" in request.headers.get("accept", ""):
            page = root_page(metadata.name, metadata.version, dashboard, self._links())
            return HTMLResponse(page, headers=PAGE_HEADERS)
        links = {"docs": "/docs", "openapi": "/openapi.json", "dashboard": dashboard or None}
        return as_json({"name": metadata.name, "version": metadata.version, **links})

    async def openapi(self, _request: Request) -> Response:
        """The description of all operations."""
        return as_json(self._document())

    async def model_openapi(self, request: Request) -> Response:
        """The description of a model's operations, with its tensors."""
        return as_json(self._describe(*model_of(request)))

    async def page(self, _request: Request) -> Response:
        """The description of all operations, with links to those of the models that are ready."""
        return HTMLResponse(api_page(self._document(), "openapi.json", self._links()), headers=PAGE_HEADERS)

    async def model_page(self, request: Request) -> Response:
        """The description of a model as a page."""
        name, _ = model_of(request)
        source = f"../v2/models/{quote(name, safe='')}/openapi.json"
        return HTMLResponse(api_page(self._describe(name, 0), source, ()), headers=PAGE_HEADERS)

    def _links(self) -> list[tuple[str, str]]:
        """The models that are ready, and where their pages are."""
        names = sorted({each.name for each in self._server.index(ready=True)})
        return [(name, f"docs/{quote(name, safe='')}") for name in names]

    def _describe(self, name: str, version: int) -> dict[str, Any]:
        policy = self._server.model_config(name, version).model_transaction_policy
        decoupled = policy is not None and policy.decoupled
        return describe_model(self._server.model_metadata(name, version), version, decoupled)
