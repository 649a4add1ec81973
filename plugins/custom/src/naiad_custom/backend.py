"""The backend `python`, and Python-based backends: serve the function, class or TritonPythonModel of a model.py."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from naiad.backend import BackendTraits, Model, ModelContext
from naiad.errors import InvalidArgumentError, NaiadError
from naiad_config import ModelConfig
from naiad_custom.completion import completed
from naiad_custom.context import PythonContext, python_context
from naiad_custom.declaration import MARK
from naiad_custom.files import ModelFile
from naiad_custom.isolation import check_isolation, declared_isolation
from naiad_custom.native import DefinedModel, ModelDefinition

if TYPE_CHECKING:
    from naiad_custom.triton.model import TritonModel

_TRITON_CLASS = "TritonPythonModel"
_NO_TENSORS = (
    "model '%s' has no inputs and no outputs: write them into its config.pbtxt, or into an auto_complete_config in %s"
)


class PythonBackend:
    """Decides by what the file holds: something that `@model` marked, or a class TritonPythonModel.

    The file is that of the model's version, or the one in `directory`, whose name is that of the backend then.
    A file is imported once for `complete` and `load` together: what runs at its top level runs once a version.
    """

    def __init__(self, directory: Path | None = None) -> None:
        self._directory = directory
        if directory is None:
            self.traits = BackendTraits(name="python", files={"model.py": ""}, executes_files=True)
        else:
            self.traits = BackendTraits(name=directory.name, code_directory=directory)
        self._imported: dict[Path, tuple[tuple[int, int], ModelFile]] = {}

    def isolation_of(self, context: ModelContext) -> str:
        """The isolation that the file asks for, which is not imported for that; "" for none."""
        return declared_isolation(self._path(context))

    def complete(self, context: ModelContext) -> ModelConfig:
        """The configuration with what annotations or `auto_complete_config` say."""
        file = self._import(python_context(context))
        try:
            config = self._completed(context, file)
        except BaseException:
            file.discard()
            raise
        self._keep(self._path(context), file)
        return config

    def load(self, context: ModelContext) -> Model:
        """Make the model of a version ready to be instantiated. Raises NaiadError with file, line and reason."""
        own = python_context(context)
        file = self._kept(context) or self._import(own)
        file.belong_to(own)
        if hint := file.unused_requirements():
            context.logger.warning("%s", hint)
        try:
            return self._model(own, file)
        except BaseException:
            file.discard()
            raise

    def forget(self, context: ModelContext) -> None:
        """Forget the file that `complete` imported: its configuration was refused."""
        kept = self._imported.pop(self._path(context), None)
        if kept is not None:
            kept[1].discard()

    def _completed(self, context: ModelContext, file: ModelFile) -> ModelConfig:
        if _TRITON_CLASS in vars(file.module):
            from naiad_custom.triton.completion import auto_completed

            config = auto_completed(context.config, file, vars(file.module)[_TRITON_CLASS])
            if not (config.input or config.output):
                context.logger.warning(_NO_TENSORS, config.name, file.path)
            return config
        definition = definition_in(file)
        check_isolation(context.config, definition.declaration, file.path)
        return completed(context.config, definition.signature, definition.declaration)

    def _model(self, context: PythonContext, file: ModelFile) -> "DefinedModel | TritonModel":
        if _TRITON_CLASS in vars(file.module):
            from naiad_custom.triton.model import TritonModel

            return TritonModel(context, file, vars(file.module)[_TRITON_CLASS])
        definition = definition_in(file)
        check_isolation(context.config, definition.declaration, file.path)
        completed(context.config, definition.signature, definition.declaration)
        return DefinedModel(definition, context, file.close, file.location)

    def _import(self, context: PythonContext) -> ModelFile:
        folders = (context.version_directory, context.model_directory)
        return ModelFile(context, self._path(context), folders if self._directory is None else (self._directory,))

    def _path(self, context: ModelContext) -> Path:
        return context.model_path("model.py") if self._directory is None else self._directory / "model.py"

    def _keep(self, path: Path, file: ModelFile) -> None:
        """Keep the imported file for `load`, and drop those whose folder is gone: each override has its own folder.

        The path is that in the folder of the version; the file's own is where its link leads to, if it follows one.
        """
        for gone in [each for each in list(self._imported) if each == path or not each.is_file()]:
            earlier = self._imported.pop(gone, None)
            if earlier is not None:
                earlier[1].discard()
        self._imported[path] = (_stamp(path), file)

    def _kept(self, context: ModelContext) -> ModelFile | None:
        """The file as `complete` imported it a moment ago, unless it changed since."""
        path = self._path(context)
        stamp, file = self._imported.pop(path, ((0, 0), None))
        if file is None or (path.is_file() and stamp == _stamp(path)):
            return file
        file.close()
        return None


def definition_in(file: ModelFile) -> ModelDefinition:
    """The one thing in the file that `@model` marked.

    Raises InvalidArgumentError when there is none, or several, or if its annotations cannot be evaluated, which Python
    3.14 does here and earlier versions at the import.
    """
    held = {id(each): each for each in vars(file.module).values() if MARK in getattr(each, "__dict__", {})}
    own = [each for each in held.values() if each.__module__ == file.module.__name__]
    functions: list[Callable[..., object]] = own or list(held.values())
    if len(functions) == 1:
        try:
            return ModelDefinition(functions[0])
        except NaiadError:
            raise
        except Exception as error:
            raise InvalidArgumentError(f"{file.location(error)}: {file.describe(error)}") from error
    if functions:
        names = ", ".join(each.__qualname__ for each in functions)
        raise InvalidArgumentError(f"{file.path}: @model marks {names}; a file holds one model, so mark one of them")
    raise InvalidArgumentError(
        f"{file.path} holds no model: mark a function or class with @naiad_custom.model, or define a class "
        f"{_TRITON_CLASS}"
    )


def _stamp(path: Path) -> tuple[int, int]:
    status = path.stat()
    return status.st_mtime_ns, status.st_size
