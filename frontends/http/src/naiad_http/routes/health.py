"""Routes of health, metadata and configuration of the server and its models.

Answers about health have the bodies of the Open Inference Protocol (`$live_server_response`, `$ready_server_response`,
`$ready_model_response`), which KServe's clients read; Triton's have none, and its clients go by the status.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from starlette.requests import Request
from starlette.responses import Response

from naiad.reports import TensorMetadata
from naiad_config.json import to_json
from naiad_http.routes.operations import Operation, as_json, model_of
from naiad_http.statuses import HttpError

if TYPE_CHECKING:
    from naiad.server import ServerApi

_RETRY = (("Retry-After", "1"),)


class HealthRoutes:
    """Liveness, readiness, metadata and configuration; `stopping` says whether the frontend is about to stop."""

    def __init__(self, server: "ServerApi", stopping: Callable[[], bool]) -> None:
        self._server = server
        self._stopping = stopping

    def operations(self) -> list[Operation]:
        """Every operation of this group."""
        model = "/v2/models/{model}"
        version = "/v2/models/{model}/versions/{version}"
        return [
            Operation("GET", "/v2", "metadata", "Name, version and extensions of the server", self.server_metadata),
            Operation("GET", "/v2/health/live", "health", "Whether the server runs", self.live, {400: "it does not"}),
            Operation(
                "GET",
                "/v2/health/ready",
                "health",
                "Whether the server and its models can serve",
                self.ready,
                {400: "it cannot", 503: "its models are being loaded"},
            ),
            *(
                Operation("GET", path, "metadata", "Inputs and outputs of a model", self.model_metadata)
                for path in (model, version)
            ),
            *(
                Operation(
                    "GET",
                    f"{path}/ready",
                    "health",
                    "Whether a model can serve",
                    self.model_ready,
                    {400: "it is loaded and cannot"},
                )
                for path in (model, version)
            ),
            *(
                Operation("GET", f"{path}/config", "model-config", "The model's whole configuration", self.model_config)
                for path in (model, version)
            ),
        ]

    async def live(self, _request: Request) -> Response:
        """`{"live": true}`, or a 400 with `{"live": false}`."""
        self._refuse_when_stopping()
        live = self._server.live()
        return as_json({"live": live}, 200 if live else 400)

    async def ready(self, _request: Request) -> Response:
        """`{"ready": true}`, a 400 with `{"ready": false}`, or a 503 with the reason while the start-up models load."""
        self._refuse_when_stopping()
        readiness = self._server.ready()
        if readiness.starting:
            raise HttpError(503, "; ".join(readiness.reasons), _RETRY)
        return as_json({"ready": readiness.ready}, 200 if readiness.ready else 400)

    async def model_ready(self, request: Request) -> Response:
        """`{"name": ..., "ready": true}`, or a 400 with the reasons."""
        self._refuse_when_stopping()
        name, version = model_of(request)
        readiness = self._server.model_ready(name, version)
        if not readiness.ready:
            raise HttpError(400, f"Model version not ready: {'; '.join(readiness.reasons)}")
        return as_json({"name": name, "ready": True})

    async def server_metadata(self, _request: Request) -> Response:
        """The server's metadata."""
        metadata = self._server.metadata()
        return as_json({"name": metadata.name, "version": metadata.version, "extensions": list(metadata.extensions)})

    async def model_metadata(self, request: Request) -> Response:
        """A model's metadata."""
        metadata = self._server.model_metadata(*model_of(request))
        return as_json(
            {
                "name": metadata.name,
                "versions": [str(version) for version in metadata.versions],
                "platform": metadata.platform,
                "inputs": [_tensor(each) for each in metadata.inputs],
                "outputs": [_tensor(each) for each in metadata.outputs],
            }
        )

    async def model_config(self, request: Request) -> Response:
        """A model's configuration, every field of it."""
        return as_json(to_json(self._server.model_config(*model_of(request))))

    def _refuse_when_stopping(self) -> None:
        if self._stopping():
            raise HttpError(503, "Server exiting", _RETRY)


def _tensor(metadata: TensorMetadata) -> dict[str, Any]:
    return {"name": metadata.name, "datatype": metadata.datatype, "shape": list(metadata.shape)}
