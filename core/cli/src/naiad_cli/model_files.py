"""Model files on the command line: `naiad serve model.py` gets a temporary model repository of links to the file."""

import tempfile
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath
from types import TracebackType

from naiad import PluginRegistry
from naiad.errors import ConfigError, InvalidArgumentError
from naiad_config import ModelConfig
from naiad_config.detection import KNOWN_FORMATS
from naiad_config.escapes import quoted
from naiad_config.repository import version_numbers
from naiad_config.text import parse_text

_REFRESH_SECONDS = 0.5


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


class ModelFiles:
    """The repositories for what was named on the command line: folders as they are, files in a temporary one.

    In the temporary repository a model is a folder of links, with a configuration that names backend and file. `files`
    are the model files. Raises InvalidArgumentError for a file that no backend reads and for the folder of a model,
    NotFoundError with what to install where the backend is missing.
    """

    def __init__(self, words: Sequence[str], registry: PluginRegistry) -> None:
        self._registry = registry
        files = [Path(word).absolute() for word in words if Path(word).is_file()]
        folders = [word for word in words if not Path(word).is_file()]
        for word in folders:
            self._refuse_model_folder(Path(word))
        self.files = tuple(ModelFile(path, path.stem, self._backend_of(path)) for path in files)
        for first in self.files:
            for other in self.files:
                if first.name == other.name and first is not other:
                    raise InvalidArgumentError(
                        f"'{first.path}' and '{other.path}' are both model '{first.name}'; rename one of the files"
                    )
        self._temporary = tempfile.TemporaryDirectory(prefix="naiad-") if self.files else None
        self._over = threading.Event()
        for file in self.files:
            self._write(file)
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
        if self._temporary is not None:
            self._temporary.cleanup()

    def follow(self) -> None:
        """Link new neighbours from now on, from a thread of its own, so that a server that polls sees them change."""
        self._refresh()
        if self.files:
            threading.Thread(target=self._keep_fresh, name="naiad-links", daemon=True).start()

    def in_words_of_user(self, text: str) -> str:
        """The text with the user's paths in place of those of the temporary repository."""
        if self._temporary is None or self._temporary.name not in text:
            return text
        for file in self.files:
            folder = f"{self._temporary.name}/{file.name}"
            source = file.configuration if file.configuration.is_file() else file.path
            text = text.replace(f"{folder}/config.pbtxt", str(source)).replace(f"{folder}/1/", f"{file.path.parent}/")
            text = text.replace(f"{folder}/1", str(file.path.parent)).replace(folder, str(file.path))
        return text.replace(self._temporary.name, ", ".join(str(file.path) for file in self.files))

    def warnings(self) -> Iterator[str]:
        """A sentence for each folder that has no model, with what to do."""
        for word in self.repositories:
            folder = Path(word)
            if not folder.is_dir() or any(each.is_dir() for each in folder.iterdir() if each.name[0] not in "._"):
                continue
            loose = sorted(each for each in folder.iterdir() if each.suffix in self._suffixes())
            advice = (
                f"write naiad serve {loose[0]}, or move it to {folder}/{loose[0].stem}/1/model{loose[0].suffix}"
                if loose
                else f"naiad new model NAME --directory {folder} writes one, and naiad serve model.py serves a file"
            )
            yield f"model repository '{word}' has no model: it has no folder with a version folder such as 1/; {advice}"

    def _suffixes(self) -> set[str]:
        names = [name for backend in self._registry.backends().values() for name in backend.traits.files]
        return {PurePath(name).suffix for name in (*names, *(known.file for known in KNOWN_FORMATS))}

    def _backend_of(self, path: Path) -> str:
        for known in KNOWN_FORMATS:
            if path.suffix == PurePath(known.file).suffix:
                return self._registry.backend(known.backend).traits.name
        for backend in self._registry.backends().values():
            if path.suffix in {PurePath(name).suffix for name in backend.traits.files}:
                return backend.traits.name
        suffixes = ", ".join(sorted(self._suffixes()))
        raise InvalidArgumentError(f"'{path}' is no model file that a backend reads; they end in {suffixes}")

    def _refuse_model_folder(self, path: Path) -> None:
        """Raise InvalidArgumentError, with what to write, for a model's or a version's folder."""
        names = {name for backend in self._registry.backends().values() for name in backend.traits.files}
        names |= {known.file for known in KNOWN_FORMATS}

        def has_model_file(folder: Path) -> bool:
            return folder.is_dir() and any(each.name in names for each in folder.iterdir())

        path = path.absolute()
        versions = version_numbers(path)
        if versions and (
            (path / "config.pbtxt").is_file() or any(has_model_file(path / str(version)) for version in versions)
        ):
            model = path
        elif path.name.isdigit() and has_model_file(path):
            model = path.parent
        else:
            return
        raise InvalidArgumentError(
            f"'{path}' is the folder of {'model' if model is path else 'a version of model'} '{model.name}', "
            f"not a model repository; write naiad serve {model.parent} (with --model-control-mode=explicit "
            f"--load-model={model.name} for this model alone)"
        )

    def _write(self, file: ModelFile) -> None:
        folder = self._folder(file)
        folder.mkdir(parents=True)
        (folder / file.path.name).symlink_to(file.path)
        if file.backend != "python":
            self._link_neighbours(file)
        (folder.parent / "config.pbtxt").write_text(_configuration(file), encoding="utf-8")

    def _folder(self, file: ModelFile) -> Path:
        return Path(self._temporary.name if self._temporary else "", file.name, "1")

    def _link_neighbours(self, file: ModelFile) -> None:
        links = {path.name: path for path in file.neighbours()}
        folder = self._folder(file)
        for link in folder.iterdir():
            if not link.exists() and link.name != file.path.name:
                link.unlink()
        for name, path in links.items():
            if not (folder / name).is_symlink():
                (folder / name).symlink_to(path)

    def _refresh(self) -> None:
        for file in self.files:
            self._link_neighbours(file)
            configuration = self._folder(file).parent / "config.pbtxt"
            text = _configuration(file)
            if configuration.read_text(encoding="utf-8") != text:
                configuration.write_text(text, encoding="utf-8")

    def _keep_fresh(self) -> None:
        while not self._over.wait(_REFRESH_SECONDS):
            try:
                self._refresh()
            except OSError:  # the folder changes while it is read; the next look sees it whole
                continue


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
