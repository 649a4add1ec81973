"""TLS context of the HTTP frontend, from its options."""

import ssl
from collections.abc import Mapping
from typing import Any

from naiad_kit.frontends import tls


def server_context(settings: Mapping[str, Any]) -> ssl.SSLContext | None:
    """The TLS context of these options, None for plain connections; TLS 1.2 and newer.

    With `--http-root-cert` clients may present a certificate of that authority, with `--http-use-ssl-mutual` they must.
    Raises InvalidArgumentError for a missing or invalid file, for a key of another certificate, and for certificate
    files without `--http-use-ssl`, which would silently serve without TLS.
    """
    context = tls.server_context(settings, "HTTP")
    if context is not None:
        context.set_alpn_protocols(["http/1.1"])
    return context
