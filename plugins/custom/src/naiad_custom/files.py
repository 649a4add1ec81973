"""Model files: imports each model.py into a package of its own, and finds the lines that an error comes from."""

import sys
import traceback
from importlib import util
from pathlib import Path
from types import ModuleType

from naiad.errors import InvalidArgumentError
from naiad_custom.context import PythonContext
from naiad_custom.loaded import ModelPackage, SourceLoader


class ModelFile:
    """A model file as it was imported: its `path`, its `module`, and the name of the package that it lives in."""

    def __init__(self, context: PythonContext, path: Path) -> None:
        if not path.is_file():
            raise InvalidArgumentError(f"there is no model file '{path}'")
        self.path = path
        self._model_directory = str(context.model_directory)
        self._package = ModelPackage.of(context, path)
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
        directory = self._model_directory
        own = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename.startswith(directory)]
        return f"{own[-1].filename}:{own[-1].lineno}" if own else str(self.path)

    def _import(self) -> ModuleType:
        name = f"{self.package}.{self.path.stem}"
        spec = util.spec_from_file_location(name, self.path, loader=SourceLoader(self._package, name, str(self.path)))
        if spec is None or spec.loader is None:
            raise InvalidArgumentError(f"'{self.path}' is no Python file")
        module = util.module_from_spec(spec)
        sys.modules[name] = module
        try:
            spec.loader.exec_module(module)
        except (Exception, SystemExit) as error:
            self.close()
            raise InvalidArgumentError(f"{self.location(error)}: {type(error).__name__}: {error}") from error
        return module
