"""The first code of the process of an instance; a script, which imports nothing but the standard library by itself.

Its argument is a JSON object: `path` replaces `sys.path` where the interpreter is the server's own; else `packages` are
the folders of the server's packages that the interpreter's own environment lacks. `work`, `control` and `lifeline` are
descriptors. A process that the model spawns with `multiprocessing` runs this script as `__mp_main__`, and finds the
same packages.
"""

import fcntl
import gc
import json
import os
import resource
import signal
import struct
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_file_location
from types import ModuleType
from typing import NoReturn

_F_SETSIG = 10
_PACKAGES = "NAIAD_PACKAGES"


class PackageFinder:
    """Finds the packages of the server by their folders, and nothing else that lies beside them."""

    def __init__(self, folders: Mapping[str, str]) -> None:
        self._folders = folders

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The spec of one of the packages."""
        folder = self._folders.get(name)
        if folder is None:
            return None
        return spec_from_file_location(name, f"{folder}/__init__.py", submodule_search_locations=[folder])


def end_with(lifeline: int) -> None:
    """Let the system kill this process and its children when the server has ended, whatever their code does then.

    The server has the other end of this pipe. When it closes, Linux signals one group for each time that the pipe was
    opened for reading, so this process opens it anew, for the group that it leads. Its children are in that group,
    unless they leave it.
    """
    own = lifeline
    with suppress(OSError):  # without /proc
        own = os.open(f"/proc/self/fd/{lifeline}", os.O_RDONLY | os.O_NONBLOCK)
        os.close(lifeline)
    os.set_inheritable(own, False)
    fcntl.fcntl(own, fcntl.F_SETOWN, -os.getpid())
    fcntl.fcntl(own, _F_SETSIG, signal.SIGKILL)
    fcntl.fcntl(own, fcntl.F_SETFL, fcntl.fcntl(own, fcntl.F_GETFL) | os.O_ASYNC)


def refuse(work: int, reason: str) -> NoReturn:
    """Say why this process cannot serve, as a DYING frame without the modules that make frames, and end."""
    texts = [text.encode("utf-8", "replace") for text in ("", reason, "EnvironmentError", "")]
    values = b"".join(b"s" + struct.pack("<I", len(text)) + text for text in texts)
    value = b"l" + struct.pack("<I", 5) + values + b"n"
    body = struct.pack("<I", len(value)) + value
    os.write(work, struct.pack("<IHHQ", len(body), 22, 0, 0) + body)
    os._exit(70)


def main() -> None:
    """Run the instance until the server closes it."""
    setup = json.loads(sys.argv[1])
    end_with(setup["lifeline"])
    for link in (setup["work"], setup["control"]):
        os.set_inheritable(link, False)  # a program that the model starts would keep it open when this process ends
    if setup["path"] is not None:
        sys.path[:] = setup["path"]
    else:
        del sys.path[0]  # the folder of this file, whose modules have names of their own
        sys.meta_path.append(PackageFinder(setup["packages"]))
        os.environ[_PACKAGES] = json.dumps(setup["packages"])
    gc.disable()  # what is imported stays: 88 collections took a fifteenth of the time and freed nothing
    try:
        from naiad_process_workers.runtime import Runtime
    except Exception as error:  # noqa: BLE001 - an old interpreter, or one without numpy, fails in many ways
        version = ".".join(map(str, sys.version_info[:3]))
        refuse(setup["work"], f"its interpreter {sys.executable} (Python {version}) cannot run it: {error!r}")
    gc.freeze()
    gc.enable()

    sys.argv[:] = [""]
    if setup["memory"]:
        resource.setrlimit(resource.RLIMIT_AS, (setup["memory"], setup["memory"]))
    Runtime(setup["work"], setup["control"]).run()


if __name__ == "__main__":
    main()
elif __name__ == "__mp_main__" and _PACKAGES in os.environ:
    sys.meta_path.append(PackageFinder(json.loads(os.environ[_PACKAGES])))
