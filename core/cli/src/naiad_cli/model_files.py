"""Model files on the command line: `naiad serve model.py` gets a temporary model repository of links to the file."""

import tempfile
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath
from types import TracebackType

from naiad import PluginRegistry
from naiad.errors import ConfigError, InvalidArgumentError, NotFoundError, UsageError
from naiad.options import Option
from naiad_cli.bare_folders import LinkedFolder, bare_folder, empty_version, readable
from naiad_cli.parser import did_you_mean
from naiad_config import ModelConfig
from naiad_config.detection import KNOWN_FORMATS
from naiad_config.escapes import quoted
from naiad_config.repository import is_folder_name
from naiad_config.text import parse_text

_REFRESH_SECONDS = 0.5

MODEL_NAME = Option(
    "model-name",
    "",
    "the name of the model of a FILE, or of a DIR that is one model",
    metavar="NAME",
)
"""The option that names a model on the command line."""


@dataclass(frozen=True, slots=True)
class ModelFile:
    """A model file of the user's: its path, the name of its model, and the backend that reads it."""

    path: Path
    name: str
    backend: str

    @property
    def configuration(self) -> Path:
        """The configuration that counts where it exists: `fraud.pbtxt` beside `fraud.py`."""
        return self.path.with_suffix(".pbtxt")

    def neighbours(self) -> Iterator[Path]:
        """What belongs to the model besides: Python modules and packages, or files whose names begin as its own."""
        for path in sorted(self.path.parent.iterdir()):
            if self.path.suffix == ".py":
                belongs = path.suffix == ".py" or (path / "__init__.py").is_file()
            else:
                belongs = path.name.startswith((f"{self.path.stem}.", f"{self.path.stem}_")) and path.is_file()
            if belongs and path != self.configuration:
                yield path


class LooseFile(ModelFile):
    """The model file of a bare folder: all of the folder belongs to the model, and its `config.pbtxt` counts."""

    __slots__ = ()

    @property
    def configuration(self) -> Path:
        """The configuration of the folder."""
        return self.path.with_name("config.pbtxt")

    def neighbours(self) -> Iterator[Path]:
        """Everything else in the folder."""
        yield from (path for path in sorted(self.path.parent.iterdir()) if path not in (self.path, self.configuration))


class ModelFiles:
    """The repositories for what was named on the command line: folders as they are, files in a temporary one.

    In the temporary repository a model is a folder of links, with a configuration that names backend and file. `files`
    are the model files. With a `name` the one word that there is may also be the folder of a model, or one with nothing
    but model files, and the model has this name. Raises InvalidArgumentError for a file that no backend reads and for
    the folder of a model without a name, NotFoundError with what to install where the backend is missing.
    """

    def __init__(self, words: Sequence[str], registry: PluginRegistry, name: str = "") -> None:
        self._registry = registry
        self._name = name
        _check_name(name, words)
        paths = [Path(word).absolute() for word in words if Path(word).is_file()]
        folders = [word for word in words if not Path(word).is_file()]
        bare = [model for word in folders if name and (model := self._bare(Path(word).absolute())) is not None]
        if bare:
            folders = []
        for word in folders:
            self._refuse_missing_file(Path(word))
            self._refuse_model_folder(Path(word))
        self.files = (
            *(ModelFile(path, name or path.stem, self._backend_of(path)) for path in paths),
            *(model for model in bare if isinstance(model, ModelFile)),
        )
        self._linked = tuple(model for model in bare if isinstance(model, LinkedFolder))
        for first in self.files:
            for other in self.files:
                if first.name == other.name and first is not other:
                    raise InvalidArgumentError(
                        f"'{first.path}' and '{other.path}' are both model '{first.name}'; rename one of the files"
                    )
        self._temporary = tempfile.TemporaryDirectory(prefix="naiad-") if self.files or bare else None
        self._over = threading.Event()
        self._following: threading.Thread | None = None
        for file in self.files:
            self._write(file)
        for model in self._linked:
            model.write(self._folder(model.name))
        if name:  # of a URL this is its fragment
            folders = [f"{word}#{name}" if "://" in word else word for word in folders]
        self.repositories = (*folders, *([self._temporary.name] if self._temporary else []))

    def __enter__(self) -> "ModelFiles":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Remove the temporary repository."""
        self._over.set()
        if self._following is not None:  # it may be linking into the folder that is to be removed
            self._following.join()
        if self._temporary is not None:
            self._temporary.cleanup()

    def follow(self) -> None:
        """Link new neighbours from now on, from a thread of its own, so that a server that polls sees them change."""
        self._refresh()
        if self.files:
            self._following = threading.Thread(target=self._keep_fresh, name="naiad-links", daemon=True)
            self._following.start()

    def in_words_of_user(self, text: str) -> str:
        """The text with the user's paths in place of those of the temporary repository."""
        if self._temporary is None or self._temporary.name not in text:
            return text
        for model in self._linked:
            text = text.replace(f"{self._temporary.name}/{model.name}", str(model.path))
        for file in sorted(self.files, key=lambda file: len(file.name), reverse=True):  # add2 before add
            folder = f"{self._temporary.name}/{file.name}"
            source = file.configuration if file.configuration.is_file() else file.path
            text = text.replace(f"{folder}/config.pbtxt", str(source)).replace(f"{folder}/1/", f"{file.path.parent}/")
            text = text.replace(f"{folder}/1", str(file.path.parent)).replace(folder, str(file.path))
        paths = [*(file.path for file in self.files), *(model.path for model in self._linked)]
        return text.replace(self._temporary.name, ", ".join(map(str, paths)))

    def warnings(self) -> Iterator[str]:
        """A sentence for each folder that has no model, and for a name that nothing has, with what to do."""
        if self._name and not (self._temporary or "://" in self.repositories[0] or self._is_model(self._name)):
            yield (
                f"--{MODEL_NAME.name}={self._name} names no model: '{self.repositories[0]}' is a model repository, "
                "whose models keep the names of their folders"
            )
        for word in self.repositories:
            folder = Path(word)
            if not folder.is_dir() or any(each.is_dir() for each in readable(folder) if each.name[0] not in "._"):
                continue
            loose = sorted(each for each in readable(folder) if each.suffix in self._suffixes())
            advice = (
                f"write naiad serve {loose[0]}, or add --{MODEL_NAME.name}={loose[0].stem}, or move it to "
                f"{folder}/{loose[0].stem}/1/model{loose[0].suffix}"
                if loose
                else f"naiad new model NAME --directory {folder} writes one, and naiad serve model.py serves a file"
            )
            yield f"model repository '{word}' has no model: it has no folder with a version folder such as 1/; {advice}"

    def _is_model(self, name: str) -> bool:
        return any((Path(repository) / name).is_dir() for repository in self.repositories)

    def _model_files(self) -> Sequence[str]:
        """The names of files and folders that mark a version folder, in the order of detection."""
        of_backends = [name for backend in self._registry.backends().values() for name in backend.traits.files]
        return list(dict.fromkeys([*(known.file for known in KNOWN_FORMATS), *of_backends]))

    def _suffixes(self) -> set[str]:
        return {PurePath(name).suffix for name in self._model_files()}

    def _bare(self, path: Path) -> ModelFile | LinkedFolder | None:
        """The model of a bare folder, None for a repository."""
        bare = bare_folder(path, self._model_files())
        if bare is None:
            return None
        if not bare.files:
            return LinkedFolder(path, self._name, bare.links)
        file = path / bare.file(str(path))
        return LooseFile(file, self._name, self._backend_of(file))

    def _backend_of(self, path: Path) -> str:
        for known in KNOWN_FORMATS:
            if path.suffix == PurePath(known.file).suffix:
                return self._registry.backend(known.backend).traits.name
        for backend in self._registry.backends().values():
            if path.suffix in {PurePath(name).suffix for name in backend.traits.files}:
                return backend.traits.name
        suffixes = ", ".join(sorted(self._suffixes()))
        raise InvalidArgumentError(f"'{path}' is not a model file that a backend reads; they end in {suffixes}")

    def _refuse_missing_file(self, path: Path) -> None:
        """Raise NotFoundError, with the nearest name beside it, for a model file that is not there."""
        if path.suffix not in self._suffixes() or "://" in str(path) or path.exists():
            return
        beside = [each.name for each in readable(path.parent)]
        raise NotFoundError(f"there is no model file '{path}'{did_you_mean(path.name, beside)}")

    def _refuse_model_folder(self, path: Path) -> None:
        """Raise InvalidArgumentError, with what to write, for a model's or a version's folder."""
        path, names = path.absolute(), self._model_files()
        bare = bare_folder(path, names)
        if bare is None and (version := empty_version(path)):
            file = "model.py" if "model.py" in names else names[0]
            raise InvalidArgumentError(
                f"'{path}' is the folder of model '{path.name}', not a model repository, and its version folder "
                f"'{version}' has no model file; put one there, such as {file}, and write naiad serve {path.parent}"
            )
        if bare is not None and "" in bare.links:
            model = path
        elif path.name.isdigit() and bare is not None and {*bare.files} & {*names}:
            model = path.parent
        else:
            return
        raise InvalidArgumentError(
            f"'{path}' is the folder of {'model' if model is path else 'a version of model'} '{model.name}', "
            f"not a model repository; add --{MODEL_NAME.name}={model.name}, or write naiad serve {model.parent} (with "
            f"--model-control-mode=explicit --load-model={model.name} for this model alone)"
        )

    def _write(self, file: ModelFile) -> None:
        folder = self._version(file)
        folder.mkdir(parents=True)
        (folder / file.path.name).symlink_to(file.path)
        if file.backend != "python":
            self._link_neighbours(file)
        (folder.parent / "config.pbtxt").write_text(_configuration(file), encoding="utf-8")

    def _folder(self, name: str) -> Path:
        return Path(self._temporary.name if self._temporary else "", name)

    def _version(self, file: ModelFile) -> Path:
        return self._folder(file.name) / "1"

    def _link_neighbours(self, file: ModelFile) -> None:
        links = {path.name: path for path in file.neighbours()}
        folder = self._version(file)
        for link in folder.iterdir():
            if not link.exists() and link.name != file.path.name:
                link.unlink()
        for name, path in links.items():
            if not (folder / name).is_symlink():
                (folder / name).symlink_to(path)

    def _refresh(self) -> None:
        for file in self.files:
            self._link_neighbours(file)
            configuration = self._folder(file.name) / "config.pbtxt"
            text = _configuration(file)
            if configuration.read_text(encoding="utf-8") != text:
                configuration.write_text(text, encoding="utf-8")

    def _keep_fresh(self) -> None:
        while not self._over.wait(_REFRESH_SECONDS):
            try:
                self._refresh()
            except OSError:  # the folder changes while it is read; the next look sees it whole
                continue


def _check_name(name: str, words: Sequence[str]) -> None:
    """Raise UsageError for a name that no folder can have, or one for several words."""
    if name and (not is_folder_name(name) or name.startswith((".", "__"))):
        raise UsageError(f"--{MODEL_NAME.name}={name} is not the name of a model; it becomes that of a folder")
    if name and len(words) != 1:
        raise UsageError(
            f"--{MODEL_NAME.name}={name} names one model, and there are {len(words)} folders and files to serve"
        )


def _configuration(file: ModelFile) -> str:
    """The configuration beside the file, if there is one, and below it what it does not say, so that lines keep."""
    text = file.configuration.read_text(encoding="utf-8", errors="replace") if file.configuration.is_file() else ""
    try:
        config = parse_text(text)
    except ConfigError:  # the server reports it, with the user's file and line
        config = ModelConfig()
    lines = [text] if not text or text.endswith("\n") else [f"{text}\n"]
    if not config.backend and not config.platform:
        lines.append(f"backend: {quoted(file.backend)}\n")
    if not config.default_model_filename:
        lines.append(f"default_model_filename: {quoted(file.path.name)}\n")
    if file.backend == "python":
        lines.append('parameters { key: "follow_link" value { string_value: "true" } }\n')
    return "".join(lines)
