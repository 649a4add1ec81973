"""Engine files: which plan a GPU takes, and its bytes."""

from pathlib import Path

from naiad.backend import ModelContext
from naiad.errors import InvalidArgumentError
from naiad_tensorrt.runtime import MAGIC, RTX_MAGIC

DEFAULT_FILE = "model.plan"
_LONGEST_DESCRIPTION = 1 << 20


def plan_path(context: ModelContext, compute_capability: str) -> Path:
    """The engine's file for a GPU of this compute capability (`8.0`).

    That is what `cc_model_filenames` has for it, else `default_model_filename`, else `model.plan`. Raises
    NotFoundError, with what is there instead, and InvalidArgumentError when the name leaves the model's folder.
    """
    config, folder = context.config, context.version_directory
    name = config.cc_model_filenames.get(compute_capability) or config.default_model_filename or DEFAULT_FILE
    if not (folder / name).resolve().is_relative_to(context.model_directory.resolve()):
        raise InvalidArgumentError(f"the engine '{name}' of model '{config.name}' leaves the model's folder")
    return context.existing_path(folder / name)


def read_plan(path: Path) -> bytes:
    """The engine in that file, without the description in JSON that Ultralytics writes before it.

    That description follows its length in 4 bytes, the lowest first.
    """
    return _bare(path.read_bytes())


def head_of(path: Path) -> bytes:
    """The first bytes of that engine, by which `runtime_for` knows it."""
    with path.open("rb") as file:
        return _bare(file.read(_LONGEST_DESCRIPTION))[:64]


def _bare(plan: bytes) -> bytes:
    start = 4 + int.from_bytes(plan[:4], "little")
    return plan[start:] if plan[4:5] == b"{" and plan[start : start + 4] in (MAGIC, RTX_MAGIC) else plan
