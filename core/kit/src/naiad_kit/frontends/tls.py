"""TLS options: the server's certificate and key, and the roots of client certificates."""

import os
import ssl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from naiad.errors import UsageError


def server_context(settings: Mapping[str, Any], protocol: str) -> ssl.SSLContext | None:
    """What the options of that `protocol` ("HTTP", "gRPC") ask for, None for plain connections; TLS 1.2 and newer.

    With `--http-root-cert` clients may show a certificate from there, with `--http-use-ssl-mutual` they must. Raises
    UsageError for a file that is missing or no certificate, for a key of another certificate, and for files
    without `--http-use-ssl`, which would otherwise be served in the clear.
    """
    option = protocol.lower()
    mutual: bool = settings[f"{option}-use-ssl-mutual"]
    if not (mutual or settings[f"{option}-use-ssl"]):
        _refuse_files_in_the_clear(settings, protocol)
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    certificate, key = (_readable(settings, protocol, f"{option}-server-{part}") for part in ("cert", "key"))
    load_pair(context, *read_pair(option, certificate, key))
    if mutual or settings[f"{option}-root-cert"]:
        _load_roots(context, option, _readable(settings, protocol, f"{option}-root-cert"))
        context.verify_mode = ssl.CERT_REQUIRED if mutual else ssl.CERT_OPTIONAL
    return context


def _refuse_files_in_the_clear(settings: Mapping[str, Any], protocol: str) -> None:
    option = protocol.lower()
    for name in ("server-cert", "server-key", "root-cert"):
        if settings[f"{option}-{name}"]:
            raise UsageError(
                f"--{option}-{name} is given, but {protocol} is to be served in the clear; add --{option}-use-ssl"
            )


def _readable(settings: Mapping[str, Any], protocol: str, option: str) -> str:
    path: str = settings[option]
    if not path:
        raise UsageError(f"{protocol} over TLS needs --{option}; give it a PEM file")
    try:
        with open(path, "rb"):  # noqa: PTH123 - only to tell which of the files cannot be read
            return path
    except OSError as error:
        raise UsageError(f"--{option}: '{path}' cannot be read: {error.strerror or error}") from error


def read_pair(option: str, certificate: str, key: str) -> tuple[bytes, bytes]:
    """The contents of these files. Raises UsageError unless they are a certificate and its key.

    `option` is `http` or `grpc`.
    """
    try:
        contents = Path(certificate).read_bytes(), Path(key).read_bytes()
        load_pair(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), *contents)
    except (ssl.SSLError, OSError) as error:
        raise UsageError(
            f"--{option}-server-cert '{certificate}' and --{option}-server-key '{key}' are not a certificate and key "
            f"that belong together, in PEM and without a password: {error}"
        ) from error
    return contents


def load_pair(context: ssl.SSLContext, certificate: bytes, key: bytes) -> None:
    """Have a context use a certificate and its key, in PEM. Raises ssl.SSLError and OSError.

    A context in use takes only what `read_pair` has checked: with a key of another certificate it would lose its own.
    """
    with _file_in_memory(certificate) as certificate_path, _file_in_memory(key) as key_path:
        context.load_cert_chain(certificate_path, key_path, password=_no_password)


@contextmanager
def _file_in_memory(content: bytes) -> Iterator[str]:
    """The path of a file in memory with that content: `load_cert_chain` takes no bytes, and no key goes to a disk."""
    with os.fdopen(os.memfd_create("naiad-certificate"), "wb", buffering=0) as file:
        file.write(content)
        yield f"/proc/self/fd/{file.fileno()}"


def _no_password() -> str:
    """Instead of asking on the terminal."""
    return ""


def _load_roots(context: ssl.SSLContext, option: str, path: str) -> None:
    try:
        context.load_verify_locations(path)
    except (ssl.SSLError, OSError) as error:
        raise UsageError(f"--{option}-root-cert: '{path}' holds no certificates in PEM: {error}") from error
