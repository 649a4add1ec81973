"""Errors of the user's own code: the line that raised them, and their tracebacks without the frames that led there.

Code is the user's if its file is part neither of Python, nor of an installed package, nor of Naiad and its plugins.
Code that was generated, as the methods of a dataclass are, has no file.
"""

import sys
import sysconfig
from functools import lru_cache
from pathlib import Path
from types import TracebackType

from naiad_config.errors import NaiadError, describe_error

_OF_PYTHON = ("<", *(f"{sysconfig.get_path(name)}/" for name in ("stdlib", "platstdlib", "purelib", "platlib")))
"""How the names of files begin that are Python's, or of generated code (`<string>`)."""
_PACKAGES = ("/site-packages/", "/dist-packages/")


class RemoteTraceback(Exception):  # noqa: N818 - it stands for the error, whose text is its last line
    """The traceback of an error that was raised in a model's own process: the cause of the error that is raised here.

    A log has the name of a class in front of its text, so this class has one that says where.
    """

    __module__, __qualname__ = "builtins", "In the model's own process"

    def __str__(self) -> str:
        return str(self.args[0])


def from_user_code(error: BaseException) -> BaseException:
    """What to log of that error: itself, its traceback from the first frame of the user's code on, or RemoteTraceback.

    An error without a frame of the user's code stays as it is; a SyntaxError needs none, as its text has the line.
    """
    if isinstance(error.__cause__, RemoteTraceback):
        return error.__cause__
    others = _folders_of_others()
    frames = error.__traceback__
    while frames is not None and not _is_user_code(frames, others):
        frames = frames.tb_next
    return error.with_traceback(frames) if frames is not None or isinstance(error, SyntaxError) else error


def foreign_cause(error: BaseException | None) -> BaseException | None:
    """The error of a model or framework that a NaiadError began with, as of `from_user_code`; None without one."""
    seen: list[BaseException] = []
    while isinstance(error, NaiadError):
        seen.append(error)
        error = error.__cause__
        if any(error is each for each in seen):  # `raise error from error`
            return None
    return None if error is None else from_user_code(error)


def describe_failure(error: BaseException) -> str:
    """As `describe_error`, followed by the last line of the user's code that led there: `KeyError: 'y' (model.py:12)`.

    Of a group of errors, the first one is described too. The file comes without its folder: clients read this, and need
    not know where a server keeps its files.
    """
    described = f"{describe_error(error)}{user_line(error)}"
    if isinstance(error, BaseExceptionGroup):
        return f"{described}; the first is {describe_failure(error.exceptions[0])}"
    return described


def user_line(error: BaseException) -> str:
    """The last line of the user's code that led to an error, as ` (model.py:12)`; "" without one."""
    others = _folders_of_others()
    where, frames = "", error.__traceback__
    while frames is not None:
        if _is_user_code(frames, others):
            where = f" ({Path(frames.tb_frame.f_code.co_filename).name}:{frames.tb_lineno})"
        frames = frames.tb_next
    return where


def _is_user_code(frames: TracebackType, others: tuple[str, ...]) -> bool:
    file = frames.tb_frame.f_code.co_filename
    return not file.startswith(others) and not any(folder in file for folder in _PACKAGES)


def _folders_of_others() -> tuple[str, ...]:
    """The folders of Python's own modules, of installed packages, and of the packages of Naiad and its plugins."""
    return _folders_with(len(sys.modules))


@lru_cache(1)
def _folders_with(_imported: int) -> tuple[str, ...]:
    """The folders while so many modules are imported. To look at thousands of them takes as long as a request."""
    # not list(items()): the garbage collector may run while that list is built, and what it calls may import modules
    modules = sys.modules.copy()
    ours = (module for name, module in modules.items() if name.startswith("naiad") and "." not in name)
    return *_OF_PYTHON, *{f"{Path(folder)}/" for module in ours for folder in getattr(module, "__path__", ())}
