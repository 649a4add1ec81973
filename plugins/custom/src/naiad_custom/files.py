"""Module loading: imports each model.py under its own package name, so that no two loaded versions share a module.

The package's path is the version folder and then the model folder, so that `import helper`, `from helper import x` and
`from .helper import x` find a module there, and other models never see it: a file that has such neighbours gets an
`__import__` of its own, which looks there first (the standard library keeps its names). `importlib.import_module`
and `pickle` go past it; they need the module's real name, which is `f"{__package__}.helper"`.
"""

import builtins
import functools
import itertools
import re
import sys
import traceback
from collections.abc import Mapping, Sequence
from importlib import machinery, util
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

from naiad.errors import InvalidArgumentError
from naiad_custom.context import PythonContext

CONTEXT = "__naiad_context__"
"""The attribute of a model's package that holds its PythonContext."""

_number = itertools.count(1)


class ModelFile:
    """A model file as it was imported: its `path`, its `module`, and the package that it and its neighbours live in."""

    def __init__(self, context: PythonContext, path: Path) -> None:
        label = re.sub(r"\W", "_", context.config.name)
        self.path = path
        self.package = f"_naiad_{label}_v{context.version}_{next(_number)}"
        self._context = context
        self._directories = (context.version_directory, context.model_directory)
        self._neighbours: dict[str, bool] = {}
        self._has_neighbours = any(_has_modules(directory, path) for directory in self._directories)
        self._finders: dict[str, machinery.FileFinder] = {}
        self.module = self._import()

    def belong_to(self, context: PythonContext) -> None:
        """Be the file of that context from now on: a file is imported for a configuration that is not complete yet."""
        self._context = context
        setattr(sys.modules[self.package], CONTEXT, context)

    def close(self) -> None:
        """Forget the modules; what still refers to them keeps working."""
        _FINDER.packages.pop(self.package, None)
        for name in _loaded_modules(self.package):
            sys.modules.pop(name, None)

    def discard(self) -> None:
        """Forget the modules of a file that will never be served, and free their globals.

        A function and the globals of its module refer to each other, so only this frees them without a collection.
        """
        own = [sys.modules[name] for name in _loaded_modules(self.package)]
        self.close()
        for module in own:
            vars(module).clear()

    def location(self, error: BaseException) -> str:
        """`file:line` of the innermost line of this model's own code that raised the error, or the file."""
        if isinstance(error, SyntaxError) and error.filename:
            return f"{error.filename}:{error.lineno}"
        directory = str(self._context.model_directory)
        own = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename.startswith(directory)]
        return f"{own[-1].filename}:{own[-1].lineno}" if own else str(self.path)

    def find(self, name: str, path: Sequence[str]) -> machinery.ModuleSpec | None:
        """The spec of a module inside the package: a file or a package first, a folder without `__init__.py` last."""
        folder = None
        for directory in path:
            finder = self._finders.get(directory)
            if finder is None:
                finder = self._finders[directory] = machinery.FileFinder(directory, *self._loaders())
            spec = finder.find_spec(name)
            if spec is not None and spec.loader is not None:
                return spec
            folder = folder or spec
        return folder

    def load(self, module: ModuleType) -> None:
        """Set the `__import__` of the module, if its folder has modules to import."""
        if self._has_neighbours:
            module.__dict__["__builtins__"] = {**vars(builtins), "__import__": self._import_for_model}

    def _import(self) -> ModuleType:
        if not self.path.is_file():
            raise InvalidArgumentError(f"there is no model file '{self.path}'")
        if _FINDER not in sys.meta_path:
            sys.meta_path.insert(0, _FINDER)
        package = ModuleType(self.package, f"The files of model '{self._context.config.name}'.")
        package.__path__ = [str(directory) for directory in self._directories]
        setattr(package, CONTEXT, self._context)
        sys.modules[self.package] = package
        _FINDER.packages[self.package] = self
        name = f"{self.package}.{self.path.stem}"
        spec = util.spec_from_file_location(name, self.path, loader=_SourceLoader(self, name, str(self.path)))
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

    def _loaders(self) -> list[tuple[Any, list[str]]]:
        return [
            (machinery.ExtensionFileLoader, machinery.EXTENSION_SUFFIXES),
            (functools.partial(_SourceLoader, self), machinery.SOURCE_SUFFIXES),
            (machinery.SourcelessFileLoader, machinery.BYTECODE_SUFFIXES),
        ]

    def _is_neighbour(self, name: str) -> bool:
        known = self._neighbours.get(name)
        if known is None:
            spec = self.find(f"{self.package}.{name}", [str(directory) for directory in self._directories])
            if spec is None or name in sys.stdlib_module_names:
                known = False
            else:
                known = spec.loader is not None or util.find_spec(name) is None
            self._neighbours[name] = known
        return known

    def _import_for_model(
        self,
        name: str,
        globals: Mapping[str, object] | None = None,  # noqa: A002 - the signature of builtins.__import__
        locals: Mapping[str, object] | None = None,  # noqa: A002
        fromlist: Sequence[str] | None = (),
        level: int = 0,
    ) -> ModuleType:
        top = name.partition(".")[0]
        if level or not self._is_neighbour(top):
            return builtins.__import__(name, globals, locals, fromlist or (), level)
        module = builtins.__import__(f"{self.package}.{name}", globals, locals, fromlist or (), 0)
        return module if fromlist else sys.modules[f"{self.package}.{top}"]


class _SourceLoader(machinery.SourceFileLoader):
    """Compiles each time: bytecode files would change the repository, and be stale for a file rewritten in a second."""

    def __init__(self, owner: ModelFile, fullname: str, path: str) -> None:
        super().__init__(fullname, path)
        self._owner = owner

    def get_code(self, fullname: str) -> CodeType:
        path = self.get_filename(fullname)
        code: CodeType = self.source_to_code(self.get_data(path), path)
        return code

    def exec_module(self, module: ModuleType) -> None:
        self._owner.load(module)
        super().exec_module(module)


class _Finder:
    """Finds the modules inside the packages of models; every other name is none of its business."""

    def __init__(self) -> None:
        self.packages: dict[str, ModelFile] = {}

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> machinery.ModuleSpec | None:
        owner = self.packages.get(name.partition(".")[0])
        return None if owner is None or path is None else owner.find(name, path)


_FINDER = _Finder()


def _loaded_modules(package: str) -> list[str]:
    """The names of a package and its modules; other threads may import modules meanwhile."""
    return [name for name in list(sys.modules) if name.partition(".")[0] == package]


def _has_modules(directory: Path, model: Path) -> bool:
    """Whether the folder has anything to import beside the model file."""
    return any(
        path != model and (path.suffix in (".py", ".so", ".pyc", ".pyd") or (path.is_dir() and not path.name.isdigit()))
        for path in directory.iterdir()
        if path.name != "__pycache__"
    )
