"""CORS: pages of one other origin, or of all, may call the API (`--http-allow-origin`).

See https://fetch.spec.whatwg.org/#http-cors-protocol. Each response has the same headers, so no request is looked at:
the allowed origin is in them whether the request came from there or not, and the browser compares the two.
"""

from urllib.parse import urlsplit

from starlette.types import ASGIApp, Receive, Scope, Send

_PREFLIGHT_SECONDS = 600
_METHODS = b"GET, HEAD, POST"


def allowed_origin(text: str) -> str:
    """`*`, or an origin as browsers send it: `https://app.example`. Raises ValueError for anything else."""
    if text in ("", "*"):
        return text
    parts = urlsplit(text)
    if parts.scheme not in ("http", "https") or not parts.hostname or text != f"{parts.scheme}://{parts.netloc}":
        raise ValueError(f"'{text}' is not an origin such as https://app.example, nor *")
    if "@" in text or not text.isascii() or any(letter <= " " or letter in "\"',;" for letter in text):
        raise ValueError(f"'{text}' is not an origin such as https://app.example, nor *")
    return text.lower()


def cors_headers(origin: str) -> list[tuple[str, str]]:
    """The headers that every response has; none without an allowed origin."""
    if not origin:
        return []
    exposed = "Inference-Header-Content-Length, Retry-After"
    return [("Access-Control-Allow-Origin", origin), ("Access-Control-Expose-Headers", exposed)]


class Preflights:
    """ASGI application that answers the preflights of browsers and leaves all other requests to another one."""

    def __init__(self, application: ASGIApp) -> None:
        self._application = application

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request."""
        headers = dict(scope.get("headers", ()))
        if scope.get("method") != "OPTIONS" or b"access-control-request-method" not in headers:
            await self._application(scope, receive, send)
            return
        answered = [
            (b"access-control-allow-methods", _METHODS),
            (b"access-control-allow-headers", headers.get(b"access-control-request-headers", b"content-type")),
            (b"access-control-max-age", b"%d" % _PREFLIGHT_SECONDS),
            (b"content-length", b"0"),
        ]
        await send({"type": "http.response.start", "status": 200, "headers": answered})
        await send({"type": "http.response.body", "body": b""})
