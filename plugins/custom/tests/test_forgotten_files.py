"""Imported model files are forgotten whatever becomes of a load."""

import asyncio
import gc
import json
import sys
import weakref
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import naiad_custom
from naiad import Server
from naiad.errors import NaiadError
from naiad_custom.files import ModelFile

CODE = b"""
from naiad_custom import INT64, Array, model

@model
def answer(x: Array[INT64, 1]) -> Array[INT64, 1]:
    return x
"""
ON_GPU = json.dumps({"backend": "python", "instance_group": [{"kind": "KIND_GPU"}]})


def modules() -> set[str]:
    return {name for name in list(sys.modules) if name.startswith("naiad_custom.loaded.")}


@contextmanager
def without_a_collector() -> Iterator[None]:
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def in_server(tmp_path: Path, use: Callable[[Server], Awaitable[None]]) -> None:
    async def run() -> None:
        options = {"model-control-mode": "explicit"}
        async with Server(model_repository=[tmp_path], plugins=[naiad_custom], options=options) as server:
            await use(server)

    asyncio.run(run())


def test_overrides_that_are_refused_after_their_file_was_imported_leave_nothing_behind(tmp_path):
    async def refuse_many(server: Server) -> None:
        before = modules()

        for _ in range(40):
            with pytest.raises(NaiadError, match="GPU"):
                await server.load("m", ON_GPU, {"1/model.py": CODE})

        assert modules() == before

    in_server(tmp_path, refuse_many)


def test_the_file_of_a_refused_override_is_freed_with_its_globals(tmp_path):
    alive: list[weakref.ref[Any]] = []
    keep = ModuleType("naiad_test_keep")
    keep.seen = lambda function: alive.append(weakref.ref(function))  # the file cannot reach the test otherwise
    sys.modules["naiad_test_keep"] = keep
    code = CODE + b"import naiad_test_keep\nnaiad_test_keep.seen(answer)\n"

    async def refuse(server: Server) -> None:
        with without_a_collector():
            with pytest.raises(NaiadError, match="GPU"):
                await server.load("m", ON_GPU, {"1/model.py": code})

            assert [each() for each in alive] == [None]

    try:
        in_server(tmp_path, refuse)
    finally:
        del sys.modules["naiad_test_keep"]


def test_loads_and_unloads_leave_no_modules_behind(tmp_path):
    (tmp_path / "m" / "1").mkdir(parents=True)
    (tmp_path / "m" / "1" / "model.py").write_bytes(CODE)

    before = modules()

    async def reload_often(server: Server) -> None:
        for _ in range(50):
            await server.load("m")
            await server.unload("m")

    in_server(tmp_path, reload_often)

    assert modules() == before


def test_a_file_whose_load_never_comes_is_forgotten_with_the_next(folder, tmp_path):
    folder.write(CODE.decode())
    before = modules()
    folder.completed()
    (folder.path / "1" / "model.py").rename(tmp_path / "moved.py")

    folder.write(CODE.decode(), version=2)
    folder.backend.complete(folder.context(2))

    assert len(modules() - before) == 2  # the package and the module of version 2


class ImportingName(str):
    """The name of a module that imports another one while another thread looks at it, as may happen at any time."""

    __slots__ = ()

    def startswith(self, *arguments):
        sys.modules["naiad_test_imported_meanwhile"] = sys
        return super().startswith(*arguments)


@pytest.mark.parametrize("forget", ["close", "discard"])
def test_modules_are_forgotten_while_other_threads_import(folder, monkeypatch, forget):
    folder.write(CODE.decode())
    before = modules()
    file = ModelFile(folder.context(1), folder.path / "1" / "model.py", (folder.path / "1", folder.path))
    monkeypatch.setitem(sys.modules, ImportingName("naiad_test_importing"), sys)

    try:
        getattr(file, forget)()
    finally:
        sys.modules.pop("naiad_test_imported_meanwhile", None)

    assert modules() == before
