"""Model repositories in the Hugging Face Hub, over the protocol that huggingface_hub speaks."""

import sys
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest

import naiad_store
from naiad import PluginRegistry, Server
from naiad.errors import NaiadError, NotFoundError, UnavailableError
from naiad.options import Settings
from naiad_store import repository
from naiad_testing.backends import FakeBackend
from naiad_testing.in_loop import request, running

from .conftest import Hub

MODEL = {"m/config.pbtxt": b'backend: "fake"', "m/1/weights": b"weights"}


def serving(url: str, **options: Any) -> AbstractAsyncContextManager[Server]:
    return running([url], FakeBackend(), naiad_store, **options)  # type: ignore[list-item]


async def served(server: Server, name: str = "m") -> bool:
    return (await server.infer(request(name, 1))).outputs["OUTPUT"].array.tolist() == [1]


async def test_a_repository_of_models_is_downloaded_and_served(hub: Hub) -> None:
    hub.files["main"] = {**MODEL, "README.md": b"#"}

    async with serving("hf://org/models") as server:
        assert await served(server)

    assert sorted(hub.paths()) == ["m/1/weights", "m/config.pbtxt"]


async def test_a_revision_and_a_subfolder_are_taken(hub: Hub) -> None:
    hub.files["v2"] = {f"for/naiad/{path}": content for path, content in MODEL.items()}

    async with serving("hf://org/models@v2/for/naiad") as server:
        assert await served(server)


async def test_the_token_goes_to_the_hub_and_not_to_where_it_redirects(hub: Hub) -> None:
    hub.files["main"] = dict(MODEL)

    async with serving("hf://org/models"):
        pass

    tokens = {path.split("/")[1]: token for path, token, _ in hub.requests}
    assert tokens == {"api": "Bearer secret", "org": "Bearer secret", "files": ""}


async def test_a_restart_downloads_nothing_and_a_new_commit_only_what_changed(hub: Hub) -> None:
    hub.files["main"] = dict(MODEL)
    async with serving("hf://org/models"):
        pass
    hub.requests.clear()
    async with serving("hf://org/models"):
        pass
    again = hub.paths()
    hub.files["main"] = MODEL | {"m/1/weights": b"other weights"}

    async with serving("hf://org/models") as server:
        assert await served(server)

    assert (again, hub.paths()) == ([], ["m/1/weights"])


async def test_a_large_file_comes_in_parts(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repository, "_PART", 4)
    hub.files["main"] = dict(MODEL)

    async with serving("hf://org/models"):
        pass

    assert [part for path, _, part in hub.requests if path == "/files/main/m/1/weights"] == ["bytes=0-3", "bytes=4-6"]


async def test_a_repository_that_the_token_may_not_read_names_it(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", "wrong")

    with pytest.raises(UnavailableError, match=r"there is no 'org/models', or the token .* docs/stores\.md"):
        async with serving("hf://org/models", exit_on_error=True):
            pass


async def test_a_revision_that_is_not_there_is_an_error_that_says_so(hub: Hub) -> None:
    with pytest.raises(NotFoundError, match="'org/models' has no such revision"):
        async with serving("hf://org/models@v9", exit_on_error=True):
            pass


async def test_a_hub_that_is_away_at_the_start_is_an_error(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")

    with pytest.raises(NaiadError, match="'hf://org/models' cannot be reached"):
        async with serving("hf://org/models", exit_on_error=True):
            pass


def test_without_huggingface_hub_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    registry = PluginRegistry.of([naiad_store])

    with pytest.raises(NotFoundError, match=r"pip install 'naiad-store\[hf\]'"):
        registry.repository_scheme("hf").open("hf://org/models", Settings(registry.options(), {}))


def test_a_single_file_is_downloaded_with_those_whose_names_begin_alike(hub: Hub, tmp_path: Path) -> None:
    names = ["onnx/bert_q8.onnx", "onnx/bert_q8.onnx_data", "onnx/bert.onnx", "onnx/bert_q8.pbtxt", "vocab.txt"]
    hub.files["main"] = {name: name.encode() for name in names}
    registry = PluginRegistry.of([naiad_store])
    opened = registry.repository_scheme("hf").open(
        "hf://org/models/onnx/bert_q8.onnx#bert", Settings(registry.options(), {})
    )

    folder = opened.models()["bert"].fetch()

    files = {path.relative_to(folder).as_posix(): path.read_text() for path in folder.rglob("*") if path.is_file()}
    assert files == {
        "config.pbtxt": "onnx/bert_q8.pbtxt",
        "1/bert_q8.onnx": "onnx/bert_q8.onnx",
        "1/model.onnx": "onnx/bert_q8.onnx",
        "1/bert_q8.onnx_data": "onnx/bert_q8.onnx_data",
        "1/model.onnx_data": "onnx/bert_q8.onnx_data",
    }
