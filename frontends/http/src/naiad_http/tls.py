"""TLS: the server's certificate and key, and whose certificates clients must show."""

import ssl
from collections.abc import Mapping
from typing import Any

from naiad.errors import InvalidArgumentError

_FILES = ("http-server-cert", "http-server-key", "http-root-cert")


def server_context(settings: Mapping[str, Any]) -> ssl.SSLContext | None:
    """What the options ask for, None for plain connections; TLS 1.2 and newer.

    With `--http-root-cert` clients may show a certificate from there, with `--http-use-ssl-mutual` they must. Raises
    InvalidArgumentError for a file that is missing or no certificate, for a key of another certificate, and for files
    without `--http-use-ssl`, which would otherwise be served in the clear.
    """
    mutual: bool = settings["http-use-ssl-mutual"]
    if not (mutual or settings["http-use-ssl"]):
        given = next((name for name in _FILES if settings[name]), "")
        if given:
            raise InvalidArgumentError(f"--{given} is given, but HTTP is to be served in the clear; add --http-use-ssl")
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.set_alpn_protocols(["http/1.1"])
    _load_pair(context, _given(settings, "http-server-cert"), _given(settings, "http-server-key"))
    if mutual or settings["http-root-cert"]:
        _load_roots(context, _given(settings, "http-root-cert"))
        context.verify_mode = ssl.CERT_REQUIRED if mutual else ssl.CERT_OPTIONAL
    return context


def _given(settings: Mapping[str, Any], option: str) -> str:
    path: str = settings[option]
    if not path:
        raise InvalidArgumentError(f"HTTP over TLS needs --{option}; give it a PEM file")
    try:
        with open(path, "rb"):  # noqa: PTH123 - only to tell which of the files cannot be read
            return path
    except OSError as error:
        raise InvalidArgumentError(f"--{option}: '{path}' cannot be read: {error.strerror or error}") from error


def _load_pair(context: ssl.SSLContext, certificate: str, key: str) -> None:
    try:
        context.load_cert_chain(certificate, key, password=_no_password)
    except (ssl.SSLError, OSError) as error:
        raise InvalidArgumentError(
            f"--http-server-cert '{certificate}' and --http-server-key '{key}' are no certificate and key that belong "
            f"together, in PEM and without a password: {error}"
        ) from error


def _no_password() -> str:
    """Instead of asking on the terminal."""
    return ""


def _load_roots(context: ssl.SSLContext, path: str) -> None:
    try:
        context.load_verify_locations(path)
    except (ssl.SSLError, OSError) as error:
        raise InvalidArgumentError(f"--http-root-cert: '{path}' holds no certificates in PEM: {error}") from error
