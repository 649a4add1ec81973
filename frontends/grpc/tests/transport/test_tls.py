"""TLS and mutual TLS, and certificates that cannot work."""

import grpc
import pytest
import trustme

from naiad.errors import InvalidArgumentError
from naiad.options import Settings
from naiad_grpc.grpcio.credentials import server_certificates
from naiad_grpc.options import OPTIONS
from naiad_kit.frontends import renewal

from .conftest import Calls, Served, answer


def server_side(certificates, **more):
    files = {"grpc-server-cert": certificates.file("cert"), "grpc-server-key": certificates.file("key")}
    return {"grpc-use-ssl": True, **files, **more}


async def asked_over_tls(served, *credentials):
    """The answer on `localhost`, which is whom the certificate is for."""
    options = [("grpc.ssl_target_name_override", "localhost")]
    async with served.channel(grpc.ssl_channel_credentials(*credentials), options=options) as channel:
        return await answer(channel, "echo", b"x", timeout=20)


def test_clients_that_trust_the_root_are_served_over_tls(run, certificates):
    async def main():
        async with Served(Calls(), **server_side(certificates)) as served:
            return (
                await asked_over_tls(served, certificates.root),
                (await asked_over_tls(served, certificates.other_root))[0],
                (await served.ask("echo", timeout=20))[0],
            )

    assert run(main()) == (b"x", "UNAVAILABLE", "UNAVAILABLE")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"grpc-server-cert": ""}, "needs --grpc-server-cert"),
        ({"grpc-server-key": "/no/such/file"}, "--grpc-server-key: '/no/such/file'"),
        ({"grpc-server-key": "client_key"}, "belong together"),
        ({"grpc-server-cert": "broken"}, "belong together"),
        ({"grpc-use-ssl-mutual": True}, "gRPC over TLS needs --grpc-root-cert"),
        ({"grpc-use-ssl-mutual": True, "grpc-root-cert": "broken"}, "--grpc-root-cert"),
    ],
)
def test_certificates_that_cannot_work_are_refused_at_start(certificates, changes, message):
    fields = {
        name: certificates.file(value) if isinstance(value, str) and hasattr(certificates, value) else value
        for name, value in changes.items()
    }

    with pytest.raises(InvalidArgumentError) as caught:
        server_certificates(Settings(OPTIONS, server_side(certificates, **fields)))

    assert message in str(caught.value)


def test_plain_connections_need_no_certificates():
    assert server_certificates(Settings(OPTIONS, {})) is None


def test_a_renewed_certificate_is_used_for_new_connections(run, certificates, tmp_path, monkeypatch):
    monkeypatch.setattr(renewal, "LOOK_SECONDS", 0.01)
    authority = trustme.CA()
    issued = authority.issue_cert("localhost")
    files = {name: tmp_path / name for name in ("cert", "key")}
    for name, file in files.items():
        file.write_bytes(getattr(certificates, name))

    async def main():
        paths = {"grpc-server-cert": str(files["cert"]), "grpc-server-key": str(files["key"])}
        async with Served(Calls(), **{"grpc-use-ssl": True, **paths}) as served:
            first = await asked_over_tls(served, certificates.root)
            files["key"].write_bytes(issued.private_key_pem.bytes())
            files["cert"].write_bytes(issued.cert_chain_pems[0].bytes())
            while await asked_over_tls(served, authority.cert_pem.bytes()) != b"x":
                pass
            return first, (await asked_over_tls(served, certificates.root))[0]

    assert run(main()) == (b"x", "UNAVAILABLE")
