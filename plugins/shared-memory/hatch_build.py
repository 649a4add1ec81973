"""Builds `guard.c` into the package where there is a C compiler; without one, shared memory is copied, not mapped.

The library uses nothing of Python's, so one wheel of a platform is for every version of Python.
"""

import os
import shlex
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

_FOLDER = "naiad_shared_memory"
_OPTIONS = ("-std=c11", "-O2", "-fPIC", "-shared", "-Wall", "-Wextra")


class GuardBuild(BuildHookInterface[Any]):
    """Compiles the one C file of this distribution."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Put the library into a wheel of this platform, or beside its source where the installation is editable."""
        if self.target_name != "wheel" or not sys.platform.startswith("linux"):
            return
        source = Path(self.root, "src", _FOLDER, "guard.c")
        self._scratch = tempfile.TemporaryDirectory()  # goes with this hook, after the wheel was made
        folder = source.parent if version == "editable" else Path(self._scratch.name)
        library = folder / "libguard.so"
        try:
            library.unlink(missing_ok=True)  # a server may have it open
            command = [*shlex.split(os.environ.get("CC", "cc")), *_OPTIONS, "-o", str(library), str(source)]
            subprocess.run(command, check=True, capture_output=True, text=True)  # noqa: S603 - the compiler of this machine
        except (OSError, subprocess.CalledProcessError) as error:
            reason = error.stderr if isinstance(error, subprocess.CalledProcessError) else error
            self.app.display_warning(f"guard.c could not be compiled, so shared memory will be copied: {reason}")
            return
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{sysconfig.get_platform().replace('-', '_').replace('.', '_')}"
        if version != "editable":
            build_data["force_include"][str(library)] = f"{_FOLDER}/libguard.so"
