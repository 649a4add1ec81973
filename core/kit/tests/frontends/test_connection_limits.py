"""The limit of open files, which bounds connections."""

import resource

import pytest

from naiad_kit.frontends.connection_limits import NO_LIMIT, open_file_limit


def test_the_limit_is_that_of_the_process(monkeypatch):
    monkeypatch.setattr(resource, "getrlimit", lambda kind: (300, 4096) if kind == resource.RLIMIT_NOFILE else None)

    assert open_file_limit() == 300


def test_a_process_without_a_limit_has_a_large_one(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(resource, "getrlimit", lambda _kind: (resource.RLIM_INFINITY, resource.RLIM_INFINITY))

    assert open_file_limit() == NO_LIMIT
