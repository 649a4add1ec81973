"""Static files of the dashboard, kept in memory: style sheet, scripts, and the vendored modules."""

import hashlib
from functools import cache
from importlib import resources
from importlib.resources.abc import Traversable

from starlette.requests import Request
from starlette.responses import Response

_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".mjs": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}


@cache
def assets() -> dict[str, tuple[bytes, str, str]]:
    """The content, type and entity tag of each file by its path under `static`."""
    files: dict[str, tuple[bytes, str, str]] = {}

    def collect(folder: Traversable, path: str) -> None:
        for each in folder.iterdir():
            if each.is_dir():
                collect(each, f"{path}{each.name}/")
            elif (suffix := each.name[each.name.rfind(".") :]) in _TYPES:
                content = each.read_bytes()
                tag = f'"{hashlib.sha256(content).hexdigest()[:24]}"'
                files[f"{path}{each.name}"] = (content, _TYPES[suffix], tag)

    collect(resources.files("naiad_dashboard").joinpath("static"), "")
    return files


async def serve_asset(request: Request) -> Response:
    """One file; 304 for a browser that has it, 404 for a path that no file has."""
    asset = assets().get(request.path_params["path"])
    if asset is None:
        return Response("there is no such file\n", 404, media_type="text/plain")
    content, media_type, tag = asset
    headers = {"ETag": tag, "Cache-Control": "no-cache"}
    if tag in request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers=headers)
    return Response(content, media_type=media_type, headers=headers)
