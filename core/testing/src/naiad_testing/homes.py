"""Files that a program writes below the home folder of its user."""

import os
import subprocess
import sys
from collections.abc import Collection
from pathlib import Path


def files_written_at_home(code: str, *arguments: str, home: Path, without: Collection[str]) -> list[Path]:
    """Run Python code with an empty folder as the home, and return the files that it leaves there.

    `arguments` are in `sys.argv`; the environment is this process's, `without` some variables. Raises
    CalledProcessError where the code fails.
    """
    kept = {name: value for name, value in os.environ.items() if name not in without}
    environment = kept | {"HOME": str(home), "XDG_CACHE_HOME": str(home)}
    subprocess.run([sys.executable, "-c", code, *arguments], env=environment, check=True)  # noqa: S603 - code of a test
    return [path for path in home.rglob("*") if path.is_file()]
