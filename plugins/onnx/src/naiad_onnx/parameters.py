"""Parameters of a configuration for ONNX Runtime: threads, graph optimisation, memory, backend settings."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from naiad.errors import Problem
from naiad.options import boolean
from naiad_config import ModelConfig
from naiad_kit.backends.onnx_runtime import (
    SESSION_PARAMETERS,
    GlobalThreads,
    SessionSettings,
    read_session_settings,
)
from naiad_kit.backends.parameters import KnownNames, ParameterReader, count

ENTRY_PREFIXES = ("session.", "ep.", "mlas.", "optimization.")
"""Keys that begin so go to ONNX Runtime as session configuration entries, as they are."""

SHRINKAGE = "memory.enable_memory_arena_shrinkage"
NAMES = KnownNames(
    "ONNX Runtime",
    (
        *SESSION_PARAMETERS,
        "enable_mem_arena",
        "enable_mem_pattern",
        "share_session_between_instances",
        SHRINKAGE,
        "cudnn_conv_algo_search",
        "gpu_mem_limit",
        "arena_extend_strategy",
        "do_copy_in_default_stream",
        "session.use_device_allocator_for_initializers",
    ),
    settings=("enable-global-threadpool", "intra_op_thread_count", "inter_op_thread_count"),
    prefixes=ENTRY_PREFIXES,
)
_ARENA = re.compile(r"cpu(:0)?|gpu(:\d+)?")
_CUDA_WORDS: Mapping[str, Mapping[str, str]] = {
    "cudnn_conv_algo_search": {"0": "EXHAUSTIVE", "1": "HEURISTIC", "2": "DEFAULT"},
    "arena_extend_strategy": {"0": "kNextPowerOfTwo", "1": "kSameAsRequested"},
    "do_copy_in_default_stream": {"0": "0", "1": "1", "false": "0", "true": "1"},
}


@dataclass(frozen=True, slots=True)
class RunSettings(SessionSettings):
    """How to run a model, beside what the session settings say.

    `entries` are session configuration entries, `shrinks` the devices (`cpu:0`) whose arena gives memory back after
    each run, `cuda` options of the CUDA provider. `shared` says whether instances on one device share a session; None
    leaves it to the device. With `global_threads` the thread counts of the model do not count. `libraries` are the
    paths of libraries with further operators.
    """

    memory_arena: bool = True
    memory_pattern: bool = True
    shared: bool | None = None
    entries: Mapping[str, str] = field(default_factory=dict)
    shrinks: tuple[str, ...] = ()
    cuda: Mapping[str, str] = field(default_factory=dict)
    global_threads: GlobalThreads | None = None
    libraries: tuple[str, ...] = ()


def run_settings(config: ModelConfig, backend: Mapping[str, str]) -> RunSettings:
    """The settings of a model; `backend` are the `--backend-config` values.

    Raises ConfigError with all bad values, and names that are misspelt.
    """
    reader = _Reader(config, backend)
    session = read_session_settings(reader)
    settings = RunSettings(
        session.intra_op_threads,
        session.inter_op_threads,
        session.parallel,
        session.graph_level,
        memory_arena=reader.read("enable_mem_arena", boolean, True),
        memory_pattern=reader.read("enable_mem_pattern", boolean, True),
        shared=reader.read("share_session_between_instances", boolean, None),
        entries={key: text for key, text in reader.texts.items() if key.startswith(ENTRY_PREFIXES)},
        shrinks=reader.shrinks(),
        cuda=reader.cuda_options(),
        global_threads=_global_threads(reader),
    )
    reader.refuse_misspelt(NAMES)
    reader.finish()
    return settings


class _Reader(ParameterReader):
    """Reads arenas and the options of CUDA as well."""

    def shrinks(self) -> tuple[str, ...]:
        """Devices with an arena: ONNX Runtime would refuse every request for one that has none."""
        devices = self.read(SHRINKAGE, _devices, ())
        if (
            "cpu:0" in devices
            and self.texts.get("enable_mem_arena")
            and not self.read("enable_mem_arena", boolean, True)
        ):
            message = f"'{SHRINKAGE}' names cpu:0, which has no arena with 'enable_mem_arena' 0"
            self.problems.append(Problem(message, f"parameters[{SHRINKAGE}]", hint="leave one of them out"))
        return devices

    def cuda_options(self) -> Mapping[str, str]:
        """Options of the CUDA provider that stand among the parameters, where older configurations have them."""
        options = {key: self._cuda_word(key) for key in _CUDA_WORDS if key in self.texts}
        if "gpu_mem_limit" in self.texts:
            options["gpu_mem_limit"] = str(self.read("gpu_mem_limit", count, 0))
        return options

    def _cuda_word(self, key: str) -> str:
        def parse(text: str) -> str:
            words = _CUDA_WORDS[key]
            word = words.get(text.lower(), text if text in words.values() else "")
            if not word:
                raise ValueError(f"'{text}' is none of {', '.join(words)}")
            return word

        return self.read(key, parse, "")


def _global_threads(reader: _Reader) -> GlobalThreads | None:
    if not reader.setting("enable-global-threadpool", boolean, False):
        return None
    return GlobalThreads(
        reader.setting("intra_op_thread_count", count, 0), reader.setting("inter_op_thread_count", count, 0)
    )


def _devices(text: str) -> tuple[str, ...]:
    devices = tuple(device.strip() for device in text.split(";") if device.strip())
    if not all(_ARENA.fullmatch(device) for device in devices):
        raise ValueError("it must name devices, as cpu:0;gpu:0")
    return tuple(device if ":" in device else f"{device}:0" for device in devices)
