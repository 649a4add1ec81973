"""TLS options that are invalid; the tests of the frontends use valid ones."""

from pathlib import Path

import pytest

from naiad.errors import InvalidArgumentError
from naiad_kit.frontends.tls import server_context

OFF = {
    "grpc-use-ssl": False,
    "grpc-use-ssl-mutual": False,
    "grpc-server-cert": "",
    "grpc-server-key": "",
    "grpc-root-cert": "",
}


def test_plain_connections_need_no_context() -> None:
    assert server_context(OFF, "gRPC") is None


@pytest.mark.parametrize("switch", ["grpc-use-ssl", "grpc-use-ssl-mutual"])
def test_a_certificate_is_needed(switch: str) -> None:
    with pytest.raises(InvalidArgumentError, match="gRPC over TLS needs --grpc-server-cert; give it a PEM file"):
        server_context({**OFF, switch: True}, "gRPC")


def test_a_file_that_cannot_be_read_is_refused_with_its_option(tmp_path: Path) -> None:
    (tmp_path / "cert").touch()
    files = {"grpc-server-cert": str(tmp_path / "cert"), "grpc-server-key": str(tmp_path / "none")}

    with pytest.raises(InvalidArgumentError, match=r"--grpc-server-key: .*none' cannot be read: No such file"):
        server_context({**OFF, "grpc-use-ssl": True, **files}, "gRPC")


def test_an_invalid_certificate_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("precious")
    files = dict.fromkeys(("grpc-server-cert", "grpc-server-key"), str(tmp_path / "file"))

    with pytest.raises(InvalidArgumentError, match="are not a certificate and key that belong together"):
        server_context({**OFF, "grpc-use-ssl": True, **files}, "gRPC")


@pytest.mark.parametrize("option", ["grpc-server-cert", "grpc-server-key", "grpc-root-cert"])
def test_a_file_without_tls_is_refused_before_it_is_served_in_the_clear(option: str) -> None:
    with pytest.raises(InvalidArgumentError, match=f"--{option} is given, but gRPC is to be served in the clear"):
        server_context({**OFF, option: "file.pem"}, "gRPC")
