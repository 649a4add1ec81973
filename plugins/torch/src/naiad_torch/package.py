"""PyTorch packages (`model.pt2`): which form a package has, and the rules of both forms."""

import zipfile
from pathlib import Path

from naiad.errors import InvalidArgumentError
from naiad_torch.compiled import CompiledArtefact
from naiad_torch.exported import ExportedArtefact

_COMPILED = "/data/aotinductor/"
_METADATA = ".wrapper_metadata.json"
_EXPORTED = "/models/model.json"


def open_package(path: Path, model: str, releases_lock: bool = False) -> CompiledArtefact | ExportedArtefact:
    """Open a package. Raises InvalidArgumentError if the file is not one, InternalError if PyTorch refuses it."""
    try:
        with zipfile.ZipFile(path) as file:
            entries = file.namelist()
            sources = [name for name in entries if _COMPILED in f"/{name}" and name.endswith(".wrapper.cpp")]
            source = "\n".join(file.read(name).decode(errors="replace") for name in sources[:1])
            described = [name for name in entries if _COMPILED in f"/{name}" and name.endswith(_METADATA)]
            metadata = file.read(described[0]).decode(errors="replace") if described else "{}"
    except (OSError, zipfile.BadZipFile) as error:
        raise InvalidArgumentError(
            f"model '{model}': '{path.name}' is not a package of PyTorch ({error}); torch.export.save or "
            "torch._inductor.aoti_compile_and_package write one"
        ) from error
    if any(_COMPILED in f"/{entry}" for entry in entries):
        return CompiledArtefact(path, model, source, metadata, releases_lock)
    if any(f"/{entry}".endswith(_EXPORTED) for entry in entries):
        return ExportedArtefact(path, model)
    raise InvalidArgumentError(
        f"model '{model}': '{path.name}' holds neither an exported program nor a compiled one; it has "
        f"{', '.join(sorted(entries)[:5])}"
    )
