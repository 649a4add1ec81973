"""Model files: imports each model.py into a package of its own, and finds the lines that an error comes from."""

import os
import sys
import traceback
from collections.abc import Sequence
from importlib import util
from pathlib import Path
from types import ModuleType

from naiad.errors import InvalidArgumentError
from naiad_config.user_code import from_user_code
from naiad_custom.context import PythonContext
from naiad_custom.hints import hint_of
from naiad_custom.loaded import ModelPackage, SourceLoader
from naiad_kit.own_process import in_own_process

FOLLOW_LINK = "follow_link"
"""Parameter of a configuration: the model file is the file that the link of that name leads to.

Errors, `__file__` and the search for neighbours then name that file and its folder: `naiad serve FILE` writes it.
"""

_OWN_ENVIRONMENT = "NAIAD_PACKAGES"
"""The environment variable of processes whose interpreter has an environment of the model's own."""


class ModelFile:
    """A model file as it was imported: its `path`, its `module`, and the name of the package that it lives in.

    It imports the modules in `folders` by their plain names.
    """

    def __init__(self, context: PythonContext, path: Path, folders: Sequence[Path]) -> None:
        if not path.is_file():
            raise InvalidArgumentError(f"there is no model file '{path}'")
        directories = list(folders)
        self._requirements = path.with_name("requirements.txt")
        if _follows_link(context):
            path = path.resolve()
            directories.insert(0, path.parent)
        self.path = path
        self._directories = tuple(f"{directory}/" for directory in directories)
        self._package = ModelPackage.of(context, path, directories)
        self.package = self._package.name
        self.module = self._import()

    def belong_to(self, context: PythonContext) -> None:
        """Be the file of that context from now on: a file is imported for a configuration that is not complete yet."""
        self._package.belong_to(context)

    def close(self) -> None:
        """Forget the modules; what still refers to them keeps working."""
        self._package.close()

    def discard(self) -> None:
        """Forget the modules of a file that will never be served, and free their globals.

        A function and the globals of its module refer to each other, so only this frees them without a collection.
        """
        own = [sys.modules[name] for name in self._package.loaded_modules()]
        self.close()
        for module in own:
            vars(module).clear()

    def location(self, error: BaseException) -> str:
        """`file:line` of the innermost line of this model's own code that raised the error, or the file."""
        if isinstance(error, SyntaxError) and error.filename:
            return f"{error.filename}:{error.lineno}"
        own = [frame for frame in traceback.extract_tb(error.__traceback__) if self._is_own(frame.filename)]
        return f"{own[-1].filename}:{own[-1].lineno}" if own else str(self.path)

    def _is_own(self, filename: str) -> bool:
        return filename.startswith(self._directories) and "/site-packages/" not in filename

    def describe(self, error: BaseException) -> str:
        """The type and text of an error; with a hint where a package is missing that the model's requirements list."""
        words = error.msg if isinstance(error, SyntaxError) else error  # its text repeats file and line
        text = f"{type(error).__name__}: {words}"
        hint = hint_of(error) or (self.unused_requirements() if isinstance(error, ImportError) else "")
        return f"{text}; {hint}" if hint else text

    def unused_requirements(self) -> str:
        """A sentence on the requirements.txt beside the model file, if it was not installed for the model; else ""."""
        if _OWN_ENVIRONMENT in os.environ or not self._requirements.is_file():
            return ""
        return (
            f"'{self._requirements}' is not installed, and the model has the packages of the server; "
            "--allow-model-requirements, of naiad-process-workers, gives models an environment with theirs, unless "
            "their isolation is 'thread'"
        )

    def _import(self) -> ModuleType:
        name = f"{self.package}.{self.path.stem}"
        spec = util.spec_from_file_location(name, self.path, loader=SourceLoader(self._package, name, str(self.path)))
        if spec is None or spec.loader is None:
            raise InvalidArgumentError(f"'{self.path}' is not a Python file")
        module = util.module_from_spec(spec)
        sys.modules[name] = module
        if in_own_process():
            sys.modules[self.path.stem] = module  # which its neighbours import by that name
        try:
            spec.loader.exec_module(module)
        except (Exception, SystemExit) as error:  # noqa: BLE001 - the model's own code; it is the cause of ours
            self.close()
            text = f"{self.location(error)}: {self.describe(error)}"
            raise InvalidArgumentError(text) from from_user_code(error)
        return module


def _follows_link(context: PythonContext) -> bool:
    parameter = context.config.parameters.get(FOLLOW_LINK)
    return parameter is not None and parameter.string_value == "true"
