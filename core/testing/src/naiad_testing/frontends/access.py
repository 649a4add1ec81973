"""Behaviours of access: restricted APIs, TLS with and without certificates of clients, ports, and invalid options."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from naiad.errors import InvalidArgumentError, NaiadError, UnavailableError
from naiad_testing.frontends.adapter import Credentials
from naiad_testing.frontends.calls import Call, RefusedError
from naiad_testing.frontends.certificates import Authority
from naiad_testing.frontends.inference import X
from naiad_testing.frontends.stage import Served, Stage
from naiad_testing.frontends.table import Table

ACCESS = Table()


@ACCESS.behaviour
def a_restricted_api_needs_its_own_header(stage: Stage) -> None:
    rules = ("health,model-repository:admin=secret", "inference:key=other")
    admin, key = (
        {f"{stage.kind.restriction_prefix}{name}": value} for name, value in (("admin", "secret"), ("key", "other"))
    )
    with stage.serving({stage.kind.restriction_option: rules}) as served:
        adapter = served.adapter
        for action in (
            adapter.index,
            lambda: adapter.infer(Call("sayer", [X])),
            lambda: adapter.infer(Call("sayer", [X], headers=admin)),
            lambda: adapter.infer(Call("sayer", [X], headers=dict.fromkeys(key, "wrong"))),
        ):
            with pytest.raises(RefusedError, match="restricted"):
                action()

        assert adapter.live(admin)
        assert adapter.infer(Call("sayer", [X], headers=key)).model == "sayer"
        assert adapter.server_metadata()["name"] == "naiad"


@contextmanager
def served_over_tls(stage: Stage, mutual: bool, shown: str | None) -> Iterator[Served]:
    """A server over TLS, and a client that shows the certificate of that name: `client`, `stranger` or none."""
    folder = stage.folder / f"tls-{mutual}-{shown}"
    ours, theirs = Authority(folder / "ours"), Authority(folder / "theirs")
    cert, key = ours.issue("server")
    own: tuple[Path, Path] | tuple[None, None] = (None, None)
    if shown is not None:
        own = (ours if shown == "client" else theirs).issue(shown)
    files = {"server-cert": cert, "server-key": key, "root-cert": ours.root}
    options: dict[str, Any] = {stage.option(name): str(path) for name, path in files.items()}
    switch = "use-ssl-mutual" if mutual else "use-ssl"
    with stage.serving(options | {stage.option(switch): True}, credentials=Credentials(ours.root, *own)) as served:
        yield served


@ACCESS.cases({"TLS": (False, None), "a certificate of ours": (True, "client")})
def a_client_is_answered_over_tls(stage: Stage, mutual: bool, shown: str | None) -> None:
    with served_over_tls(stage, mutual, shown) as served:
        assert served.adapter.infer(Call("sayer", [X])).model == "sayer"


@ACCESS.cases({"no certificate": (None,), "a certificate of strangers": ("stranger",)})
def a_client_without_a_certificate_of_ours_is_not_answered(stage: Stage, shown: str | None) -> None:
    with served_over_tls(stage, True, shown) as served, pytest.raises(RefusedError):
        served.adapter.infer(Call("sayer", [X]))


@ACCESS.behaviour
def a_client_that_does_not_speak_tls_is_not_answered(stage: Stage) -> None:
    with served_over_tls(stage, False, None) as served:
        plain = stage.connect(stage.kind.address_of(served.frontend), None)
        with pytest.raises(RefusedError):
            plain.infer(Call("sayer", [X], limit=10.0))
        plain.close()

        assert served.adapter.infer(Call("sayer", [X])).model == "sayer"


@ACCESS.behaviour
def a_port_that_is_taken_is_refused_with_its_option(stage: Stage) -> None:
    with stage.serving() as served:
        port = _port(stage, served)
        with pytest.raises(UnavailableError, match=f"--{stage.option('port')}") as caught:
            _start(stage, {stage.option("port"): port})

    assert f"port {port}" in str(caught.value)


@ACCESS.behaviour
def a_port_may_be_shared_when_both_servers_agree(stage: Stage) -> None:
    shared = {f"reuse-{stage.kind.frontend}-port": True}
    with stage.serving(shared) as first:
        port = _port(stage, first)
        with stage.serving({**shared, stage.option("port"): port}) as second:
            assert _port(stage, second) == port


INVALID_OPTIONS: dict[str, tuple[str, Any, type[NaiadError]]] = {
    "address without a host": ("address", "no.such.host.invalid", InvalidArgumentError),
    "address of others": ("address", "203.0.113.1", NaiadError),
    "pattern": ("header-forward-pattern", "[", InvalidArgumentError),
    "TLS without a certificate": ("use-ssl", True, InvalidArgumentError),
}


@ACCESS.cases(INVALID_OPTIONS)
def an_option_that_is_invalid_ends_the_start(stage: Stage, name: str, value: Any, error: type[NaiadError]) -> None:
    with pytest.raises(error, match=f"--{stage.option('server-cert' if name == 'use-ssl' else name)}"):
        _start(stage, {stage.option(name): value})


@ACCESS.behaviour
def a_restriction_that_is_invalid_ends_the_start(stage: Stage) -> None:
    with pytest.raises(InvalidArgumentError, match=f"--{stage.kind.restriction_option}"):
        _start(stage, {stage.kind.restriction_option: ("all",)})


def _start(stage: Stage, options: dict[str, Any]) -> None:
    """Start a server that must not start."""
    with stage.serving(options):
        pass


def _port(stage: Stage, served: Served) -> int:
    return int(stage.kind.address_of(served.frontend).rpartition(":")[2])
