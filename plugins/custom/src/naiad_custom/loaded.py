"""The packages of loaded model files: each version has one, whose modules import one another by their plain names.

In a process of one model (`naiad_kit.own_process`) its folders are on `sys.path`, and imports are Python's own.

This module is itself a package without a folder, so that a process that `multiprocessing` spawned can import what it is
sent: the name of a version's package holds its folders. `pickle`, `unittest.mock` and `importlib` may use the plain
names as well, such as `model`: one entry of `sys.modules` stands in for the modules of all models, and is for each
model its own.
"""

import builtins
import functools
import itertools
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module, machinery, util
from importlib.abc import Loader
from pathlib import Path
from types import CodeType, FrameType, ModuleType
from typing import TYPE_CHECKING, Any

from naiad_kit.own_process import in_own_process

if TYPE_CHECKING:
    from naiad_custom.context import PythonContext

__path__: list[str] = []

_PREFIX = f"{__name__}."
_number = itertools.count(1)


class ModelPackage:
    """The package of one version: its path is the version folder and then the model folder, or what its file says.

    `from .helper import x`, and `import helper` in a file that has such neighbours, find a module there; the standard
    library keeps its names. `context` is None in a process that was spawned.
    """

    def __init__(self, key: str, directories: Sequence[Path], has_neighbours: bool = True) -> None:
        self.name = _PREFIX + key
        self.directories = [str(directory) for directory in directories]
        self.context: PythonContext | None = None
        self._key = key
        self._has_neighbours = has_neighbours
        self._neighbours: dict[str, bool] = {}
        self._finders: dict[str, machinery.FileFinder] = {}
        _MODELS.packages[key] = self

    @classmethod
    def of(cls, context: "PythonContext", model: Path, directories: Sequence[Path]) -> "ModelPackage":
        """A new package for that version, whose model file is `model` and whose modules are in these directories."""
        name = re.sub(r"\W", "_", context.config.name)
        label = f"{name}_v{context.version}_{next(_number)}"
        key = "|".join((label, *map(_escaped, directories)))
        own = in_own_process()
        package = cls(key, directories, not own and any(_has_modules(directory, model) for directory in directories))
        if own:
            _search(package.directories)
        package.belong_to(context)
        import_module(package.name)
        return package

    def belong_to(self, context: "PythonContext") -> None:
        """Be the package of that context from now on."""
        self.context = context

    def close(self) -> None:
        """Forget the modules; what still refers to them keeps working."""
        _MODELS.packages.pop(self._key, None)
        vars(sys.modules[__name__]).pop(self._key, None)
        for name in self.loaded_modules():
            sys.modules.pop(name, None)
        _PLAIN.forget_unused()

    def loaded_modules(self) -> list[str]:
        """The names of the package and its modules; other threads may import modules meanwhile."""
        return [name for name in list(sys.modules) if name == self.name or name.startswith(f"{self.name}.")]

    def find(self, name: str, path: Iterable[str]) -> machinery.ModuleSpec | None:
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

    def has(self, name: str) -> bool:
        """Whether there is a module or a folder of that plain name."""
        return self.find(f"{self.name}.{name}", self.directories) is not None

    def load(self, module: ModuleType) -> None:
        """Set the `__import__` of the module, if its folder has modules to import."""
        if self._has_neighbours:
            module.__dict__["__builtins__"] = {**vars(builtins), "__import__": self._import_for_model}

    def _loaders(self) -> list[tuple[Any, list[str]]]:
        return [
            (machinery.ExtensionFileLoader, machinery.EXTENSION_SUFFIXES),
            (functools.partial(SourceLoader, self), machinery.SOURCE_SUFFIXES),
            (machinery.SourcelessFileLoader, machinery.BYTECODE_SUFFIXES),
        ]

    def _is_neighbour(self, name: str) -> bool:
        known = self._neighbours.get(name)
        if known is None:
            spec = self.find(f"{self.name}.{name}", self.directories)
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
        module = builtins.__import__(f"{self.name}.{name}", globals, locals, fromlist or (), 0)
        return module if fromlist else sys.modules[f"{self.name}.{top}"]


class SourceLoader(machinery.SourceFileLoader):
    """Compiles each time: bytecode files would change the repository, and be stale for a file rewritten in a second."""

    def __init__(self, package: ModelPackage, fullname: str, path: str) -> None:
        super().__init__(fullname, path)
        self._package = package

    def get_code(self, fullname: str) -> CodeType:
        """The code of the file as it is now."""
        path = self.get_filename(fullname)
        code: CodeType = self.source_to_code(self.get_data(path), path)
        return code

    def exec_module(self, module: ModuleType) -> None:
        """Run the code, with an `__import__` that knows the neighbours."""
        self._package.load(module)
        super().exec_module(module)


class _Models:
    """Finds the packages of models, and the modules inside them; every other name is none of its business.

    A package that was not loaded here is found by the folders in its name: a spawned process is sent such names, and
    pickles of an earlier process have them. Where a version from those folders is loaded, its modules are meant.
    """

    def __init__(self) -> None:
        self.packages: dict[str, ModelPackage] = {}

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> machinery.ModuleSpec | None:
        if not name.startswith(_PREFIX):
            return None
        key, _, inner = name[len(_PREFIX) :].partition(".")
        package = self.packages.get(key) or self._by_folders(key)
        if package is None:
            return None
        own = f"{package.name}.{inner}" if inner else package.name
        if own != name:
            return machinery.ModuleSpec(name, _SameModule(own), is_package=not inner)
        if inner:
            return None if path is None else package.find(name, path)
        spec = machinery.ModuleSpec(name, _Empty(), is_package=True)
        spec.submodule_search_locations = package.directories
        return spec

    def _by_folders(self, key: str) -> ModelPackage | None:
        _, *escaped = key.split("|")
        directories = [_unescaped(each) for each in escaped]
        if not directories or not all(map(Path.is_dir, map(Path, directories))):
            return None
        loaded = [package for package in list(self.packages.values()) if package.directories == directories]
        return loaded[-1] if loaded else ModelPackage(key, [Path(each) for each in directories])


class _Empty(Loader):
    """The loader of a package without a file."""

    def create_module(self, spec: machinery.ModuleSpec) -> ModuleType | None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        pass


class _SameModule(Loader):
    """The loader of a name for a module that has another one."""

    def __init__(self, own: str) -> None:
        self._own = own
        self._spec: machinery.ModuleSpec | None = None

    def create_module(self, spec: machinery.ModuleSpec) -> ModuleType:
        module = import_module(self._own)
        self._spec = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__ = self._spec  # the import system has set that of the other name


class _PlainNames:
    """Finds modules of models by their plain names, for code of that model alone: the last finder of all."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> machinery.ModuleSpec | None:
        if path is not None:
            return None
        package = package_of_caller()
        if package is None or not package.has(name):
            return None
        return machinery.ModuleSpec(name, _StandInLoader())

    def forget_unused(self) -> None:
        """Forget the names that no model has any more."""
        for name, module in sys.modules.copy().items():
            top = name.partition(".")[0]
            if type(module) is _StandIn and not any(each.has(top) for each in list(_MODELS.packages.values())):
                sys.modules.pop(name, None)


class _InnerNames:
    """Finds the inner modules of a package that has a plain name, before the path of that package is searched."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> machinery.ModuleSpec | None:
        if path is None or type(sys.modules.get(name.rpartition(".")[0])) is not _StandIn:
            return None
        package = package_of_caller()
        if package is None or util.find_spec(f"{package.name}.{name}") is None:
            return None
        return machinery.ModuleSpec(name, _StandInLoader())


class _StandInLoader(Loader):
    """Makes the entry of `sys.modules` for a plain name."""

    def create_module(self, spec: machinery.ModuleSpec) -> ModuleType:
        return _StandIn(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        _real(module)  # raises what the module itself does


class _StandIn(ModuleType):
    """The module of a plain name: that of the model whose code uses it, else that of the model loaded last."""

    def __getattribute__(self, attribute: str) -> Any:
        return getattr(_real(self), attribute)

    def __setattr__(self, attribute: str, value: Any) -> None:
        if attribute != "__spec__" and type(value) is not _StandIn:  # what the import system sets
            setattr(_real(self), attribute, value)

    def __delattr__(self, attribute: str) -> None:
        delattr(_real(self), attribute)

    def __dir__(self) -> Iterable[str]:
        return dir(_real(self))


def _real(stand_in: ModuleType) -> ModuleType:
    name = ModuleType.__getattribute__(stand_in, "__dict__")["__name__"]
    packages = [package_of_caller(), *reversed(list(_MODELS.packages.values()))]
    package = next((each for each in packages if each is not None and each.has(name.partition(".")[0])), None)
    if package is None:
        raise AttributeError(f"no loaded model has a module '{name}'")
    return import_module(f"{package.name}.{name}")


def package_of_caller() -> ModelPackage | None:
    """The package of the model whose code is nearest on the call stack."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        name = frame.f_globals.get("__name__")
        if type(name) is str and name.startswith(_PREFIX):
            package = _MODELS.packages.get(name[len(_PREFIX) :].partition(".")[0])
            if package is not None:
                return package
        frame = frame.f_back
    return next(iter(_MODELS.packages.values()), None) if in_own_process() else None


def _search(directories: Sequence[str]) -> None:
    """Let every import in a process of one model look there: after the standard library, before what is installed."""
    sys.dont_write_bytecode = True  # it would change the repository
    installed = (index for index, path in enumerate(sys.path) if path.endswith(("site-packages", "dist-packages")))
    at = next(installed, len(sys.path))
    sys.path[at:at] = [each for each in directories if each not in sys.path]


def _has_modules(directory: Path, model: Path) -> bool:
    """Whether the folder has anything to import beside the model file."""
    return any(
        path != model and (path.suffix in (".py", ".so", ".pyc", ".pyd") or (path.is_dir() and not path.name.isdigit()))
        for path in directory.iterdir()
        if path.name != "__pycache__"
    )


def _escaped(directory: Path) -> str:
    """The path as a part of a module's name, which has no dots."""
    return str(directory).replace("%", "%25").replace("|", "%7C").replace(".", "%2E")


def _unescaped(text: str) -> str:
    return text.replace("%2E", ".").replace("%7C", "|").replace("%25", "%")


_MODELS = _Models()
_PLAIN = _PlainNames()
sys.meta_path[:0] = [_MODELS, _InnerNames()]
sys.meta_path.append(_PLAIN)
