"""The backend directory: backends that are written in Python, each a folder `NAME` with a `model.py`."""

from pathlib import Path

from naiad.backend import Backend
from naiad.server import ServerApi
from naiad_custom.backend import PythonBackend

MODEL_FILE = "model.py"


class BackendDirectory:
    """The service that finds a Python-based backend by the name of its folder, also one that came after the start."""

    name = "custom"

    def __init__(self, directory: str) -> None:
        self._directory = Path(directory).absolute() if directory else None

    async def start(self, server: ServerApi) -> None:
        """Nothing: backends are looked for when models name them."""

    async def stop(self, seconds: float) -> None:
        """Nothing: backends end with their models."""

    def find_backend(self, name: str) -> Backend | None:
        """A new backend with the code in the folder of that name, None without such a folder or its `model.py`."""
        file = self._file(name)
        return PythonBackend(file.parent) if file is not None and file.is_file() else None

    def describe_search(self, name: str) -> str:
        """A sentence that names the file that would be the backend."""
        if self._directory is None:
            return "No --backend-directory is set, where one written in Python could be."
        file = self._file(name)
        if file is None:
            return f"A backend of --backend-directory '{self._directory}' has the name of a folder there."
        return (
            f"One written in Python would be '{file}' (--backend-directory), which is not there; "
            f"naiad new backend {name} writes the start of a distribution with one."
        )

    def _file(self, name: str) -> Path | None:
        """The file of a backend; None for a name that is no folder inside the directory."""
        if self._directory is None or not name or name in (".", "..") or "/" in name or "\0" in name:
            return None
        return self._directory / name / MODEL_FILE
