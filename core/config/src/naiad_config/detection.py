"""Detection of a model's backend: from its configuration, from the files of a version, or from its name."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Protocol

from naiad_config.errors import ConfigError, Problem
from naiad_config.mistakes import nearest
from naiad_config.model import ModelConfig


class BackendFormats(Protocol):
    """The models that an installed backend serves; `naiad.backend.BackendTraits` has it."""

    @property
    def name(self) -> str:
        """Its name in `backend`."""

    @property
    def aliases(self) -> Sequence[str]:
        """Further names."""

    @property
    def platforms(self) -> Sequence[str]:
        """Its names in `platform`."""

    @property
    def files(self) -> Mapping[str, str]:
        """The files or folders that mark a version folder as its own, each with its platform, "" for none."""


@dataclass(frozen=True, slots=True)
class KnownFormat:
    """A file or folder in a version folder that marks the model as a backend's, with its platform ("" for none)."""

    file: str
    backend: str
    platform: str = ""


KNOWN_FORMATS = (
    KnownFormat("model.savedmodel", "tensorflow", "tensorflow_savedmodel"),
    KnownFormat("model.graphdef", "tensorflow", "tensorflow_graphdef"),
    KnownFormat("model.plan", "tensorrt", "tensorrt_plan"),
    KnownFormat("model.onnx", "onnxruntime", "onnxruntime_onnx"),
    KnownFormat("model.xml", "openvino"),
    KnownFormat("model.pt", "pytorch", "pytorch_libtorch"),
    KnownFormat("model.pt2", "pytorch", "torch_aoti"),
    KnownFormat("model.netdef", "caffe2", "caffe2_netdef"),
    KnownFormat("libcustom.so", "custom", "custom"),
    KnownFormat("model.saved_model", "openvino"),
    KnownFormat("model.tflite", "openvino"),
    KnownFormat("model.pdmodel", "openvino"),
    KnownFormat("model.py", "python"),
)
"""In the order of detection: the first file that is there decides."""

_OF_TRITON_ALONE = frozenset({"dali", "fil", "tensorrtllm", "vllm"})
"""Backends of Triton's images that Naiad does not have; no similar name is suggested for them."""


def backend_of_platform(platform: str) -> str:
    """The well-known backend that serves a platform, "" when there is none."""
    return next((known.backend for known in KNOWN_FORMATS if platform and known.platform == platform), "")


@dataclass(frozen=True, slots=True)
class BackendSearch:
    """The search for the backend of the model `config.name` among the installed `backends`.

    `where_to_get` says in a sentence how to get the backend of a name, "" if unknown; `skipped` are sentences on
    plugins that are installed and could not be used, and `elsewhere` on where a backend of that name could be besides.
    """

    config: ModelConfig
    version_directory: Path
    backends: Sequence[BackendFormats]
    where_to_get: Callable[[str], str] = lambda _: ""
    skipped: Sequence[str] = ()
    elsewhere: Sequence[str] = ()

    def resolve(self) -> ModelConfig:
        """The configuration with `backend`, `platform` and `default_model_filename`, where they can be detected.

        Raises ConfigError, with what to install, when platform and backend contradict each other, when no installed
        backend serves the model, or when none can be detected.
        """
        config, chosen = self.config, self._backend()
        platform = config.platform or self._platform(chosen)
        return replace(
            config,
            backend=config.backend or chosen.name,
            platform=platform,
            default_model_filename=config.default_model_filename or self._filename(chosen, platform),
        )

    def describe_rivals(self) -> str:
        """A sentence for the log when the version folder has files of several backends and nothing chooses, else ""."""
        config = self.config
        configured = config.backend or config.platform or config.default_model_filename or config.cc_model_filenames
        readers = {} if configured else self._readers()
        if len(set(readers.values())) < 2:
            return ""
        listed = " and ".join(f"{file} ({backend})" for file, backend in readers.items())
        return (
            f"model '{config.name}' has files of several backends, {listed}, and its configuration names none of them: "
            f"it is served by {self._backend().name}; set 'backend' to choose, or take the files of the others away"
        )

    def _backend(self) -> BackendFormats:
        if self.config.backend:
            return self._by_backend(self.config.backend, self.config.platform)
        if self.config.platform:
            return self._by_platform(self.config.platform)
        return self._by_files() or self._by_name()

    def _platform(self, chosen: BackendFormats) -> str:
        """The platform of the model file that is configured, else there; without one, the only one of the backend."""
        present = [file for filename in self._configured_files() for file in chosen.files if _alike(filename, file)]
        present += filter(self._has, chosen.files)
        if present:
            return chosen.files[present[0]]
        platforms = set(chosen.files.values()) or set(chosen.platforms)
        return platforms.pop() if len(platforms) == 1 else ""

    def _filename(self, chosen: BackendFormats, platform: str) -> str:
        """The backend's file of that platform which is there, else its first; a backend without files has none.

        The model `x.<backend>` of a backend without files has `model.<backend>`.
        """
        files = [file for file, of in chosen.files.items() if of in ("", platform) or not platform]
        if files:
            return next(filter(self._has, files), files[0])
        suffix = self._suffix()
        return f"model.{suffix}" if suffix in (chosen.name, *chosen.aliases) else ""

    def _by_backend(self, backend: str, platform: str) -> BackendFormats:
        chosen = self._named(backend)
        usual = backend_of_platform(platform)
        platforms = chosen.platforms if chosen is not None else ()
        if usual not in ("", backend) and platform not in platforms:
            raise self._unlike(f"platform '{platform}' goes with backend '{usual}'")
        if chosen is None:
            raise self._not_installed(backend, "backend")
        if platform and platform not in platforms and self._named(platform) is not chosen:
            listed = ", ".join(f"'{known}'" for known in platforms)
            raise self._unlike(f"backend '{backend}' serves {listed}" if listed else "leave the platform out")
        return chosen

    def _by_platform(self, platform: str) -> BackendFormats:
        serving = next((each for each in self.backends if platform in each.platforms), None) or self._named(platform)
        if serving is not None:
            return serving
        backend = backend_of_platform(platform)
        if backend and self._named(backend) is None:
            raise self._not_installed(backend, "platform")
        known = sorted({"ensemble", *(known for each in self.backends for known in each.platforms)})
        near = nearest(platform, known)
        hint = f"did you mean '{near}'?" if near else f"the platforms that are installed are {', '.join(known)}"
        message = f"unexpected platform type '{platform}' for '{self.config.name}'"
        raise ConfigError([Problem(message, "platform", hint=self.where_to_get(platform) or hint)])

    def _by_files(self) -> BackendFormats | None:
        """The backend of the first known format that the model has; None when it has none."""
        formats = [*KNOWN_FORMATS, *_formats_of(self.backends)]
        present = [known for known in formats if self._is_configured(known)]
        present += [known for known in formats if self._has(known.file)]
        if not present:
            return None
        chosen = self._claiming(present[0])
        if chosen is not None:
            return chosen
        also = self._other_ways(present)
        raise self._not_installed(present[0].backend, "", f" for its file '{present[0].file}'", also)

    def _readers(self) -> dict[str, str]:
        """The model files in the version folder, in the order of detection, each with the backend that reads it."""
        readers: dict[str, str] = {}
        for known in (*KNOWN_FORMATS, *_formats_of(self.backends)):
            if known.file not in readers and self._has(known.file):
                readers[known.file] = " or ".join(each.name for each in self._reading(known)) or known.backend
        return readers

    def _other_ways(self, present: Sequence[KnownFormat]) -> str:
        """Backends for the other model files, when no plugin reads the first of them."""
        for known in present[1:]:
            for other in self._reading(known):
                return f"Or set 'backend' to '{other.name}', which reads its file '{known.file}'"
        missing = {known.backend: known.file for known in present[1:] if known.backend != present[0].backend}
        return " ".join(
            f"Its file '{file}' is one of the backend '{backend}'; {self.where_to_get(backend)}"
            for backend, file in missing.items()
        )

    def _by_name(self) -> BackendFormats:
        suffix = self._suffix()
        chosen = self._named(suffix)
        if chosen is not None:
            return chosen
        if self.where_to_get(suffix):
            raise self._not_installed(suffix, "", " for the end of its name")
        files = ", ".join(dict.fromkeys(known.file for known in (*KNOWN_FORMATS, *_formats_of(self.backends))))
        message = (
            f"could not determine the backend of '{self.config.name}': its configuration names neither 'backend' nor "
            f"'platform', its version folder '{self.version_directory.name}' holds none of {files}, and its name is "
            f"not of the form 'model.<backend_name>'"
        )
        raise ConfigError([Problem(message, "backend", hint=f"set 'backend'. {self._installed()}")])

    def _claiming(self, known: KnownFormat) -> BackendFormats | None:
        """The installed backend for this format, None without one. Raises ConfigError when there are several."""
        claiming = self._reading(known)
        if len(claiming) > 1:
            names = " or ".join(f"'{each.name}'" for each in claiming)
            message = f"several backends read the file '{known.file}' of '{self.config.name}'"
            raise ConfigError([Problem(message, "backend", hint=f"set 'backend' to {names}")])
        return next(iter(claiming), None)

    def _reading(self, known: KnownFormat) -> Sequence[BackendFormats]:
        """The installed backends for this format.

        A well-known file is for its own backend; without that it is for those that have it as their own first file, and
        not for those that can read it besides: a model must not change its framework with what else is installed.
        """
        if known not in KNOWN_FORMATS:
            return [each for each in self.backends if known.file in each.files]
        usual = self._named(known.backend)
        if usual is not None:
            return [usual]
        return [each for each in self.backends if next(iter(each.files), "") == known.file]

    def _is_configured(self, known: KnownFormat) -> bool:
        """Whether the configuration names a model file of this format."""
        return any(_alike(filename, known.file) for filename in self._configured_files())

    def _configured_files(self) -> tuple[str, ...]:
        """The model files that the configuration names, first that for all GPUs."""
        return (self.config.default_model_filename, *self.config.cc_model_filenames.values())

    def _has(self, file: str) -> bool:
        return (self.version_directory / file).exists()

    def _named(self, backend: str) -> BackendFormats | None:
        return next((each for each in self.backends if backend and backend in (each.name, *each.aliases)), None)

    def _suffix(self) -> str:
        """What follows the last dot of the model's name, "" when there is no dot."""
        return self.config.name.rpartition(".")[2] if "." in self.config.name else ""

    def _unlike(self, hint: str) -> ConfigError:
        message = f"unexpected 'platform' and 'backend' pair, got: {self.config.platform}, {self.config.backend}"
        return ConfigError([Problem(message, "platform", hint=hint)])

    def _not_installed(self, backend: str, path: str, reason: str = "", also: str = "") -> ConfigError:
        message = f"'{self.config.name}' needs the backend '{backend}'{reason}, which no installed plugin offers"
        known = [name for each in self.backends for name in (each.name, *each.aliases)]
        near = nearest(backend, known) if backend not in _OF_TRITON_ALONE else ""
        source = self.where_to_get(backend)
        guess = f"did you mean '{near}'?" if near else ""
        if backend in _OF_TRITON_ALONE:
            guess = "Naiad has no such backend; docs/from_triton.md says what to use instead."
        steps = [source or guess, also, self._installed()]
        if not source:
            steps += self.skipped if near else [*self.elsewhere, *self.skipped]
        return ConfigError([Problem(message, path, hint=" ".join(filter(None, steps)))])

    def _installed(self) -> str:
        names = ", ".join(sorted(each.name for each in self.backends))
        return f"Installed backends: {names}." if names else "No backend is installed."


def _formats_of(backends: Sequence[BackendFormats]) -> Iterator[KnownFormat]:
    for each in backends:
        for file, platform in each.files.items():
            yield KnownFormat(file, each.name, platform)


def _alike(filename: str, file: str) -> bool:
    """Whether two file names are of one format: equal, or with the same suffix."""
    suffix = PurePosixPath(filename).suffix
    return filename == file or bool(suffix and suffix == PurePosixPath(file).suffix)
