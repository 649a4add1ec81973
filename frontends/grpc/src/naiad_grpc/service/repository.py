"""RPCs of the model repository extension: index, load and unload."""

from typing import TYPE_CHECKING, Any

from naiad.errors import InvalidArgumentError, UnsupportedError
from naiad_grpc.messages import message_class
from naiad_grpc.service.operations import Operation, operation
from naiad_grpc.statuses import caller_message
from naiad_kit.frontends.parameters import load_config

if TYPE_CHECKING:
    from naiad.server import ServerApi

_FILE = "file:"


class RepositoryRpcs:
    """Index, load and unload."""

    def __init__(self, server: "ServerApi") -> None:
        self._server = server

    def operations(self) -> list[Operation]:
        """Every RPC of this group."""
        return [
            operation("RepositoryIndex", "model-repository", self.index),
            operation("RepositoryModelLoad", "model-repository", self.load),
            operation("RepositoryModelUnload", "model-repository", self.unload),
        ]

    async def index(self, request: Any) -> Any:
        """Every model and version, its state and the reason; with `ready`, the READY ones."""
        response = message_class("RepositoryIndexResponse")()
        for entry in await self._server.fresh_index(request.ready):
            version = str(entry.version or "")
            response.models.add(
                name=caller_message(entry.name), version=version, state=entry.state, reason=caller_message(entry.reason)
            )
        return response

    async def load(self, request: Any) -> Any:
        """Answers when the model is READY. Raises what `Server.load` raises, and UnsupportedError for a repository."""
        _refuse_repository(request)
        config = ""
        files: dict[str, bytes] = {}
        for key, parameter in request.parameters.items():
            if key == "config":
                config = load_config(_value(key, parameter, "string_param"))
            elif key.startswith(_FILE):
                files[key.removeprefix(_FILE)] = _value(key, parameter, "bytes_param")
            else:
                raise InvalidArgumentError(
                    f"unrecognized load parameter '{key:.80}'; there are 'config' and 'file:<version>/<file name>'"
                )
        await self._server.load(request.model_name, config, files, trusted=False)
        return message_class("RepositoryModelLoadResponse")()

    async def unload(self, request: Any) -> Any:
        """Answers when the model takes no more requests. Raises UnavailableError or UnsupportedError."""
        _refuse_repository(request)
        dependents = False
        for key, parameter in request.parameters.items():
            if key != "unload_dependents":
                raise InvalidArgumentError(f"unrecognized unload parameter '{key:.80}'; there is 'unload_dependents'")
            dependents = _value(key, parameter, "bool_param")
        await self._server.unload(request.model_name, dependents)
        return message_class("RepositoryModelUnloadResponse")()


def _refuse_repository(request: Any) -> None:
    if request.repository_name:
        raise UnsupportedError("'repository_name' specification is not supported; leave it empty")


def _value(key: str, parameter: Any, kind: str) -> Any:
    if parameter.WhichOneof("parameter_choice") != kind:
        raise InvalidArgumentError(f"invalid value type for '{key:.80}' parameter, expected {kind}.")
    return getattr(parameter, kind)
