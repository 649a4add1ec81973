"""RPCs of metadata: the server, its models and their configurations."""

from typing import TYPE_CHECKING, Any

from naiad.reports import TensorMetadata
from naiad_config.descriptors import to_message
from naiad_grpc.codec.versions import model_of
from naiad_grpc.messages import message_class
from naiad_grpc.service.operations import Operation, operation

if TYPE_CHECKING:
    from naiad.server import ServerApi


class MetadataRpcs:
    """Metadata of the server and its models, and their configurations."""

    def __init__(self, server: "ServerApi") -> None:
        self._server = server

    def operations(self) -> list[Operation]:
        """Every RPC of this group."""
        return [
            operation("ServerMetadata", "metadata", self.server_metadata),
            operation("ModelMetadata", "metadata", self.model_metadata),
            operation("ModelConfig", "model-config", self.model_config),
        ]

    async def server_metadata(self, _request: Any) -> Any:
        """Name, version and extensions of the server."""
        metadata = self._server.metadata()
        return message_class("ServerMetadataResponse")(
            name=metadata.name, version=metadata.version, extensions=metadata.extensions
        )

    async def model_metadata(self, request: Any) -> Any:
        """Inputs and outputs of a model. Raises NotFoundError or ModelNotReadyError."""
        metadata = self._server.model_metadata(*model_of(request))
        return message_class("ModelMetadataResponse")(
            name=metadata.name,
            versions=[str(version) for version in metadata.versions],
            platform=metadata.platform,
            inputs=[_tensor(each) for each in metadata.inputs],
            outputs=[_tensor(each) for each in metadata.outputs],
        )

    async def model_config(self, request: Any) -> Any:
        """A model's completed and normalised configuration. Raises NotFoundError or ModelNotReadyError."""
        return message_class("ModelConfigResponse")(config=to_message(self._server.model_config(*model_of(request))))


def _tensor(metadata: TensorMetadata) -> Any:
    message = message_class("ModelMetadataResponse.TensorMetadata")
    return message(name=metadata.name, datatype=metadata.datatype, shape=metadata.shape)
