"""TLS of our own transport: mutual TLS, and ALPN."""

import asyncio
import ssl

import grpc
import pytest
import trustme

from ..transport.conftest import answer
from .conftest import GREETING, Calls, connected, listening, message

OVERRIDE = [("grpc.ssl_target_name_override", "localhost")]


def options(certificates, **more):
    files = {"grpc-server-cert": certificates.file("cert"), "grpc-server-key": certificates.file("key")}
    return {"grpc-use-ssl": True, **files, **more}


@pytest.mark.parametrize("shown", ["client", "none"])
def test_mutual_tls_serves_clients_that_show_a_certificate_alone(run, certificates, shown):
    own = (certificates.client_key, certificates.client_cert) if shown == "client" else (None, None)
    mutual = {"grpc-use-ssl-mutual": True, "grpc-root-cert": certificates.file("root")}

    async def main():
        async with listening(Calls(), **options(certificates, **mutual)) as listener:
            credentials = grpc.ssl_channel_credentials(certificates.root, *own)
            async with grpc.aio.secure_channel(listener.target, credentials, options=OVERRIDE) as channel:
                return await answer(channel, "echo", b"x", timeout=20)

    answered = run(main())

    assert (answered if shown == "client" else answered[0]) == (b"x" if shown == "client" else "UNAVAILABLE")


@pytest.mark.parametrize(("shown", "served"), [("none", True), ("client", True), ("stranger", False)])
def test_a_root_without_mutual_tls_leaves_it_to_the_client_to_show_a_certificate(run, certificates, shown, served):
    stranger = trustme.CA().issue_cert("client")
    own = {
        "none": (None, None),
        "client": (certificates.client_key, certificates.client_cert),
        "stranger": (stranger.private_key_pem.bytes(), stranger.cert_chain_pems[0].bytes()),
    }

    async def main():
        async with listening(Calls(), **options(certificates, **{"grpc-root-cert": certificates.file("root")})) as each:
            credentials = grpc.ssl_channel_credentials(certificates.root, *own[shown])
            async with grpc.aio.secure_channel(each.target, credentials, options=OVERRIDE) as channel:
                return await answer(channel, "echo", b"x", timeout=20)

    answered = run(main())

    assert (answered if served else answered[0]) == (b"x" if served else "UNAVAILABLE")


def test_alpn_chooses_http_2(run, certificates):
    context = ssl.create_default_context(cadata=certificates.root.decode())
    context.set_alpn_protocols(["http/1.1", "h2"])

    async def main():
        async with (
            listening(Calls(), **options(certificates)) as listener,
            connected(listener, ssl=context, server_hostname="localhost") as (reader, writer),
        ):
            chosen = writer.get_extra_info("ssl_object").selected_alpn_protocol()
            writer.write(GREETING + message(b""))
            await asyncio.wait_for(reader.readexactly(9), 10)
            return chosen

    assert run(main()) == "h2"
