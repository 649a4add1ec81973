"""Options of tracing: `--trace-config`, and the older options that it replaces."""

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from naiad.errors import InvalidArgumentError, UsageError
from naiad.options import Option
from naiad_tracing.selection import LEVELS, OFF, Selection, read_levels, read_number

_logger = logging.getLogger("naiad")

MODES = ("triton", "opentelemetry")
_KEYS: Mapping[str, tuple[str, ...]] = {
    "": ("mode", "level", "rate", "count"),
    "triton": ("file", "log-frequency"),
    "opentelemetry": (
        "url",
        "resource",
        "bsp_max_queue_size",
        "bsp_schedule_delay",
        "bsp_max_export_batch_size",
    ),
}
_LEVEL_WORDS = {"true": LEVELS[0], "on": LEVELS[0], "min": LEVELS[0], "max": LEVELS[0], "false": OFF}
"""Other names for levels on the command line; MIN and MAX are those of Triton's older options."""
_PROTOCOL = "http/protobuf"
_PATH = "/v1/traces"
_REPEATED = ("level", "resource")
_REPLACED = {
    "trace-file": ("triton", "file"),
    "trace-level": ("", "level"),
    "trace-rate": ("", "rate"),
    "trace-count": ("", "count"),
    "trace-log-frequency": ("triton", "log-frequency"),
}

TRACE_OPTIONS = (
    Option(
        "trace-config",
        (),
        "a setting of tracing: mode, level, rate or count, or one of a mode, as triton,file=trace.json; "
        "may be given several times",
        metavar="[MODE,]KEY=VALUE",
        repeatable=True,
    ),
    Option("trace-file", "", "deprecated: use --trace-config triton,file=FILE", metavar="FILE"),
    Option("trace-level", (), "deprecated: use --trace-config level=LEVEL", metavar="LEVEL", repeatable=True),
    Option("trace-rate", "", "deprecated: use --trace-config rate=N", metavar="N"),
    Option("trace-count", "", "deprecated: use --trace-config count=N", metavar="N"),
    Option("trace-log-frequency", "", "deprecated: use --trace-config triton,log-frequency=N", metavar="N"),
)


@dataclass(frozen=True, slots=True)
class TraceOptions:
    """What the command line says: the mode, the widest scope's selection, and the options of each mode.

    `resource` are pairs `key=value`; `bsp_…` are those of OpenTelemetry's batch span processor, the delay in
    milliseconds.
    """

    mode: str = "triton"
    selection: Selection = field(default_factory=Selection)
    file: str = ""
    url: str = "http://localhost:4318/v1/traces"
    resource: tuple[str, ...] = ()
    bsp_max_queue_size: int = 2048
    bsp_schedule_delay: int = 5000
    bsp_max_export_batch_size: int = 512

    def fixed(self) -> dict[str, str]:
        """The settings that only the command line sets, as the trace extension writes them in this mode."""
        settings = {"trace_mode": self.mode}
        if self.mode == "triton":
            return settings | {"trace_file": self.file}
        settings |= {"url": self.url, "resource": ",".join(self.resource)} if self.resource else {"url": self.url}
        return settings | {name: str(getattr(self, name)) for name in _KEYS["opentelemetry"] if name.startswith("bsp")}


def read_options(settings: Mapping[str, Any], environment: Mapping[str, str]) -> TraceOptions:
    """The options of tracing. Raises UsageError for invalid ones.

    The environment variables that OpenTelemetry defines count in its mode where `--trace-config` says nothing.
    """
    texts_by_key: dict[tuple[str, str], list[str]] = {}
    for key, text in (*_replaced(settings), *map(_split, settings["trace-config"])):
        if key[1] in _REPEATED:
            texts_by_key.setdefault(key, []).append(text)
        else:
            texts_by_key[key] = [text]
    word = texts_by_key.get(("", "mode"), ["triton"])[0]
    mode = word.lower()
    if mode not in MODES:
        raise UsageError(f"--trace-config mode={word}: the modes are {' and '.join(MODES)}")
    environment = environment if mode == "opentelemetry" else {}
    resource = tuple(texts_by_key.get(("opentelemetry", "resource"), ()))
    for pair in resource:
        if not pair.partition("=")[0] or "=" not in pair:
            raise UsageError(f"--trace-config opentelemetry,resource={pair}: it must be KEY=VALUE")
    options = _checked(
        TraceOptions(
            mode=mode,
            selection=_selection(texts_by_key),
            file=texts_by_key.get(("triton", "file"), [""])[0],
            url=_url(texts_by_key, environment),
            resource=resource,
            bsp_max_queue_size=_batching(texts_by_key, environment, "bsp_max_queue_size", 2048),
            bsp_schedule_delay=_batching(texts_by_key, environment, "bsp_schedule_delay", 5000),
            bsp_max_export_batch_size=_batching(texts_by_key, environment, "bsp_max_export_batch_size", 512),
        )
    )
    _warn_of_protocol(options, environment)
    return options


def _replaced(settings: Mapping[str, Any]) -> Iterator[tuple[tuple[str, str], str]]:
    """What the older options say, with a warning for each; `--trace-config` may say otherwise later."""
    for name, key in _REPLACED.items():
        value = settings[name]
        values: Sequence[Any] = value if isinstance(value, tuple | list) else [value] if value != "" else []
        if values:
            new = ",".join(part for part in key if part)
            _logger.warning("--%s is deprecated; write --trace-config %s=%s", name, new, values[-1])
        yield from ((key, str(each)) for each in values)


def _split(word: str) -> tuple[tuple[str, str], str]:
    name, equals, value = word.partition("=")
    mode, comma, key = name.rpartition(",")
    if not equals or mode not in _KEYS or bool(comma) != bool(mode):
        raise UsageError(
            f"--trace-config {word}: write KEY=VALUE with a key of {', '.join(_KEYS[''])}, "
            f"or MODE,KEY=VALUE with a mode of {', '.join(MODES)}"
        )
    if key not in _KEYS[mode]:
        owner = f"mode {mode}" if mode else "no mode"
        raise UsageError(f"--trace-config {word}: the keys of {owner} are {', '.join(_KEYS[mode])}")
    return (mode, key), value


def _selection(texts_by_key: Mapping[tuple[str, str], Sequence[str]]) -> Selection:
    def number(mode: str, key: str, least: int, default: int) -> int:
        text = texts_by_key.get((mode, key))
        return _number(",".join(filter(None, (mode, key))), text[0], least) if text else default

    default = Selection()
    return Selection(
        levels=_levels(texts_by_key.get(("", "level"), [OFF])),
        rate=number("", "rate", 0, default.rate),
        count=number("", "count", -1, default.count),
        log_frequency=number("triton", "log-frequency", 0, default.log_frequency),
    )


def _number(key: str, text: str, least: int) -> int:
    try:
        return read_number(key, text, least)
    except InvalidArgumentError as error:
        raise UsageError(f"--trace-config {key}={text[:80]}: {error}") from error


def _levels(words: Sequence[str]) -> tuple[str, ...]:
    try:
        return read_levels([_LEVEL_WORDS.get(word.lower(), word.upper()) for word in words])
    except InvalidArgumentError as error:
        raise UsageError(f"--trace-config level={words[-1]}: {error}") from error


def _batching(
    texts_by_key: Mapping[tuple[str, str], Sequence[str]], environment: Mapping[str, str], key: str, default: int
) -> int:
    text = texts_by_key.get(("opentelemetry", key))
    if text:
        return _number(f"opentelemetry,{key}", text[0], 1)
    variable = f"OTEL_{key.upper()}"
    try:
        return read_number(variable, environment[variable], 1) if environment.get(variable) else default
    except InvalidArgumentError as error:
        raise UsageError(f"the variable {variable} of the environment: {error}") from error


def _url(texts_by_key: Mapping[tuple[str, str], Sequence[str]], environment: Mapping[str, str]) -> str:
    """https://opentelemetry.io/docs/specs/otel/protocol/exporter/: one variable is the whole URL, one its base."""
    default = TraceOptions().url
    text = texts_by_key.get(("opentelemetry", "url"))
    if text:
        return _whole_url(f"--trace-config opentelemetry,url={text[0]}", text[0], default)
    for variable, path in (("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", ""), ("OTEL_EXPORTER_OTLP_ENDPOINT", _PATH)):
        value = environment.get(variable)
        if value:
            source = f"the variable {variable}={value} of the environment"
            return _whole_url(source, value, default.removesuffix(path)).rstrip("/" if path else "") + path
    return default


def _warn_of_protocol(options: TraceOptions, environment: Mapping[str, str]) -> None:
    """A collector's port for gRPC answers HTTP with bytes that no message of the exporter explains."""
    names = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
    variable = next((name for name in names if environment.get(name)), "")
    if variable and environment[variable] != _PROTOCOL:
        _logger.warning(
            "%s=%s has no effect: spans are exported with OTLP over HTTP (%s), to %s",
            variable,
            environment[variable],
            _PROTOCOL,
            options.url,
        )


def _whole_url(source: str, text: str, example: str) -> str:
    """The URL of that source, which need not say `http://`. Raises UsageError for one that can be no collector's."""
    url = text if "://" in text else f"http://{text}"
    try:
        parts = urlsplit(url)
        is_sound = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_sound = False
    if not is_sound:
        raise UsageError(f"{source}: traces cannot be exported there; it must look like {example}")
    return url


def _checked(options: TraceOptions) -> TraceOptions:
    if options.mode == "opentelemetry" and options.bsp_max_export_batch_size > options.bsp_max_queue_size:
        raise UsageError(
            f"bsp_max_export_batch_size {options.bsp_max_export_batch_size} is more than the "
            f"bsp_max_queue_size {options.bsp_max_queue_size} holds; lower the one or raise the other"
        )
    if options.mode == "opentelemetry" and LEVELS[1] in options.selection.levels:
        _logger.warning("trace level TENSORS has no effect in the mode opentelemetry; tensors go to files only")
    if options.mode == "triton" and options.selection.levels and not options.file:
        _logger.warning("nothing is traced: there is no trace file; give one with --trace-config triton,file=FILE")
    return options
