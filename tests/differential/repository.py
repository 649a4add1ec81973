"""Writes the repository that both servers serve: configurations and sources from `models/`, put together."""

from pathlib import Path

MODELS = Path(__file__).with_name("models")
NOT_LOADED = ("broken", "unloaded")
"""Models that are there when the servers start, and are loaded only by request."""
ENSEMBLES = ("chain", "halfway", "ranked", "repeated")
"""Models that are made of others."""

_SOURCES = dict.fromkeys(("vector", "words", "grid", "sheet", "fixed", "unloaded", "configured"), "mirror")
_SOURCES |= dict.fromkeys(("sums_direct", "sums_oldest", "sums_text", "sums_alone", "sums_idle", "sums_named"), "sums")
_SOURCES |= dict.fromkeys(("again", "again_decoupled", "again_wrongly"), "again")
_SOURCES |= dict.fromkeys(("versions", "latest", "all_versions"), "version")
_VERSIONS = {"versions": 3, "latest": 2, "all_versions": 2}
_LABELS = {"scores": "zero\none\ntwo\n"}


def write_repository(folder: Path) -> list[str]:
    """Write every model into that folder; returns the names of those to load at start."""
    names = sorted(path.stem for path in (MODELS / "configs").glob("*.pbtxt"))
    for name in names:
        _write(folder / name)
    return [name for name in names if name not in NOT_LOADED]


def _write(model: Path) -> None:
    name = model.name
    source = MODELS / "sources" / f"{_SOURCES.get(name, name)}.py"
    for version in range(1, _VERSIONS.get(name, 1) + 1):
        (model / str(version)).mkdir(parents=True)
        if name not in ENSEMBLES:
            (model / str(version) / "model.py").write_text(source.read_text())
    (model / "config.pbtxt").write_text((MODELS / "configs" / f"{name}.pbtxt").read_text())
    if name in _LABELS:
        (model / "labels.txt").write_text(_LABELS[name])


def names() -> list[str]:
    """The names of the models that are loaded at start."""
    every = (path.stem for path in (MODELS / "configs").glob("*.pbtxt"))
    return sorted(name for name in every if name not in NOT_LOADED)
