"""Certificates for servers and clients, made by openssl."""

import shutil
import subprocess
from pathlib import Path

OPENSSL = shutil.which("openssl")
_NEW_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")


def write_certificates(folder: Path) -> Path:
    """Write `ca.pem`, and `server.pem` and `client.pem` from there with their keys, into that folder; returns it."""
    ca, ca_key = folder / "ca.pem", folder / "ca.key"
    _openssl("req", "-x509", *_NEW_KEY, "-days", "2", "-subj", "/CN=ca", "-keyout", ca_key, "-out", ca)
    (folder / "names").write_text("subjectAltName=DNS:localhost,IP:127.0.0.1\n")
    for name in ("server", "client"):
        key, request = folder / f"{name}.key", folder / f"{name}.csr"
        _openssl("req", *_NEW_KEY, "-subj", f"/CN={name}", "-keyout", key, "-out", request)
        signed = ("-CA", ca, "-CAkey", ca_key, "-CAcreateserial", "-days", "2", "-extfile", folder / "names")
        _openssl("x509", "-req", "-in", request, *signed, "-out", folder / f"{name}.pem")
    return folder


def _openssl(*words: str | Path) -> None:
    subprocess.run([str(OPENSSL), *map(str, words)], check=True, capture_output=True)
