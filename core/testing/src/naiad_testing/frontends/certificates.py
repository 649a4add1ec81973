"""Certificates for tests of TLS, in files; they need the package `trustme`."""

from pathlib import Path
from typing import Any


class Authority:
    """A root certificate in a folder, `root.pem`, and the certificates that it issues."""

    def __init__(self, folder: Path) -> None:
        import trustme

        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._authority: Any = trustme.CA()
        self.root = folder / "root.pem"
        self._authority.cert_pem.write_to_path(str(self.root))

    def issue(self, name: str) -> tuple[Path, Path]:
        """A certificate for this machine and its key, as files of that name."""
        issued = self._authority.issue_cert("localhost", "127.0.0.1", common_name=name)
        cert, key = self._folder / f"{name}.pem", self._folder / f"{name}.key"
        cert.write_bytes(b"".join(each.bytes() for each in issued.cert_chain_pems))
        issued.private_key_pem.write_to_path(str(key))
        return cert, key
