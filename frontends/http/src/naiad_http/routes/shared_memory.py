"""Routes of the shared memory extensions: register, unregister and list regions."""

import base64
import binascii
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from starlette.requests import Request
from starlette.responses import Response

from naiad.errors import InvalidArgumentError
from naiad_http.codec.documents import as_object, as_string, as_unsigned
from naiad_http.routes.documents import read_document
from naiad_http.routes.operations import Operation, as_json
from naiad_http.statuses import HttpError
from naiad_kit.shared_memory import Kind, shared_memory_of

if TYPE_CHECKING:
    from naiad.server import ServerApi

_MAX_DEVICE = 2**31 - 1


class SharedMemoryRoutes:
    """Regions in POSIX shared memory and on GPUs."""

    def __init__(self, server: "ServerApi") -> None:
        self._shared_memory = shared_memory_of(server)

    def operations(self) -> list[Operation]:
        """Every operation of this group."""
        return [
            *self._operations_on("system", "/v2/systemsharedmemory"),
            *self._operations_on("cuda", "/v2/cudasharedmemory"),
        ]

    def _operations_on(self, kind: Kind, path: str) -> list[Operation]:
        api = "shared-memory"
        off = {501: "clients may not: --allow-client-shm is false, or naiad-shared-memory is not installed"}
        region = f"{path}/region/{{region:text}}"
        status, unregister = partial(self.status, kind), partial(self.unregister, kind)
        register = self.register_system if kind == "system" else self.register_cuda
        where = f"in {kind} shared memory"
        return [
            Operation("GET", f"{path}/status", api, f"All regions {where}", status),
            Operation("GET", f"{region}/status", api, f"A region {where}", status),
            Operation("POST", f"{region}/register", api, f"Register a region {where}", register, off),
            Operation("POST", f"{path}/unregister", api, f"Unregister all regions {where}", unregister, off),
            Operation("POST", f"{region}/unregister", api, f"Unregister a region {where}", unregister, off),
        ]

    async def status(self, kind: Kind, request: Request) -> Response:
        """The regions of that kind, or the one named in the path."""
        memory = self._shared_memory()
        name = _region(request) if request.path_params else ""
        if kind == "system":
            return as_json(
                [
                    {"name": each.name, "key": each.key, "offset": each.offset, "byte_size": each.byte_size}
                    for each in memory.status("system", name)
                ]
            )
        return as_json(
            [
                {"name": each.name, "device_id": each.device_id, "byte_size": each.byte_size}
                for each in memory.status("cuda", name)
            ]
        )

    async def register_system(self, request: Request) -> Response:
        """An empty 200 when the region can be used."""
        document = await read_document(request)
        key = as_string(_field(document, "key"), "key")
        offset = as_unsigned(document.get("offset", 0), "offset")
        byte_size = as_unsigned(_field(document, "byte_size"), "byte_size")
        self._shared_memory().register_system(_region(request), key, offset, byte_size)
        return Response()

    async def register_cuda(self, request: Request) -> Response:
        """An empty 200 when the region can be used."""
        document = await read_document(request)
        raw_handle = _handle(as_object(_field(document, "raw_handle"), "raw_handle"))
        device_id = as_unsigned(_field(document, "device_id"), "device_id", _MAX_DEVICE)
        byte_size = as_unsigned(_field(document, "byte_size"), "byte_size")
        self._shared_memory().register_cuda(_region(request), raw_handle, device_id, byte_size)
        return Response()

    async def unregister(self, kind: Kind, request: Request) -> Response:
        """An empty 200, whether or not the region was registered."""
        self._shared_memory().unregister(kind, _region(request) if request.path_params else "")
        return Response()


def _region(request: Request) -> str:
    """The region of the path, which must not be empty: no name would mean all regions."""
    name: str = request.path_params["region"]
    if not name:
        raise HttpError(404, "Not Found")
    return name


def _field(document: Mapping[str, Any], key: str) -> Any:
    try:
        return document[key]
    except KeyError:
        raise InvalidArgumentError(f"Shared memory register request has no '{key}' field") from None


def _handle(document: Mapping[str, Any]) -> bytes:
    text = as_string(_field(document, "b64"), "b64")
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise InvalidArgumentError(
            f"the 'raw_handle' of a shared memory register request is not valid base64: {error}"
        ) from error
