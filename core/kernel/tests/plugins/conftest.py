"""Plugins that look installed."""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from naiad._plugins import discovery


@dataclass(frozen=True)
class FakeDistribution:
    name: str

    @property
    def metadata(self) -> dict[str, str]:
        return {"Name": self.name, "Version": "1.2"}


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., None]:
    """Install plugins given as (entry point, distribution, source text of its module)."""
    monkeypatch.syspath_prepend(tmp_path)

    def install_all(*plugins: tuple[str, str, str]) -> None:
        entry_points = []
        for number, (name, distribution, text) in enumerate(plugins):
            module = f"installed_{number}_{tmp_path.name}".replace("-", "_")
            (tmp_path / f"{module}.py").write_text(text)
            monkeypatch.delitem(sys.modules, module, raising=False)
            point = EntryPoint(name, module, "naiad")
            vars(point)["dist"] = FakeDistribution(distribution)
            entry_points.append(point)
        monkeypatch.setattr(discovery.metadata, "entry_points", lambda group: entry_points)

    return install_all
