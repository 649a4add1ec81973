"""Models that wait where a test wants them to, so that nothing in a test depends on how fast anything is."""

from pathlib import Path

from . import models
from .running import until

_WAITS = """
from naiad_custom import FP32, Array, model

@model(max_batch_size={max_batch_size})
def waits(x: Array[FP32, -1]) -> Array[FP32, -1]:
    wait()
    return x
"""

_FUNCTION = """
def {name}():
    import time
    from pathlib import Path
    from uuid import uuid4

    folder = Path({folder!r})
    (folder / str(uuid4())).touch()
    while (folder / "shut").exists():
        time.sleep(0.002)
"""


class Gate:
    """A model of its own (`x`, FP32, of one dimension) waits at it as long as it is shut; it is shut at first."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self._folder = folder
        self.shut()

    def write_model(self, repository: Path, name: str, config: str = "", max_batch_size: int = 0) -> None:
        """A model that waits at this gate in each execution."""
        source = _WAITS.format(max_batch_size=max_batch_size)
        models.write(repository, name, source + self.function("wait"), config)

    def function(self, name: str) -> str:
        """The source of a function that waits at this gate."""
        return _FUNCTION.format(name=name, folder=str(self._folder))

    def shut(self) -> None:
        (self._folder / "shut").touch()

    def open(self) -> None:
        (self._folder / "shut").unlink(missing_ok=True)

    @property
    def entered(self) -> int:
        """How many executions have come to it so far."""
        return sum(path.name != "shut" for path in self._folder.iterdir())

    def wait_until_entered(self, times: int = 1) -> None:
        until(lambda: self.entered >= times)
