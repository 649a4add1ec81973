"""Backends that a service finds by name: for models that name one which no plugin offers."""

from pathlib import Path

from naiad.backend import Backend
from naiad_testing.fake_backend import FakeBackend
from naiad_testing.in_loop import request, running, write_model
from naiad_testing.services import FakeService


class _Source(FakeService):
    """Finds the backend `late`; `searched` has every name that was looked for."""

    def __init__(self) -> None:
        super().__init__()
        self.searched: list[str] = []

    def find_backend(self, name: str) -> Backend | None:
        self.searched.append(name)
        return FakeBackend("late") if name == "late" else None

    def describe_search(self, name: str) -> str:
        return f"The attic has no {name}."


async def test_a_source_s_backend_serves_the_models_that_name_it(tmp_path: Path) -> None:
    source = _Source()
    write_model(tmp_path, "m", backend="late")
    write_model(tmp_path, "other", backend="fake")

    async with running(tmp_path, FakeBackend(), source) as server:
        response = await server.infer(request("m", 3.0))

    assert response.outputs["OUTPUT"].array.tolist() == [3.0]
    assert source.searched == ["late"]


async def test_an_unknown_backend_s_error_has_what_the_source_says(tmp_path: Path) -> None:
    write_model(tmp_path, "m", backend="elsewhere")

    async with running(tmp_path, FakeBackend(), _Source()) as server:
        (entry,) = server.index()

    assert "needs the backend 'elsewhere'" in entry.reason
    assert "The attic has no elsewhere." in entry.reason
