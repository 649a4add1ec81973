"""What the command line says about tracing."""

import logging
from collections.abc import Mapping
from typing import Any

import pytest

from naiad.errors import InvalidArgumentError, UsageError
from naiad_tracing.options import TRACE_OPTIONS, TraceOptions, read_options
from naiad_tracing.selection import Selection

DEFAULTS: Mapping[str, Any] = {option.name: option.default for option in TRACE_OPTIONS}


def read(*words: str, environment: Mapping[str, str] | None = None, **older: Any) -> TraceOptions:
    """The options of `--trace-config` words, and of older options by their name behind `trace_`."""
    fields = {f"trace-{name.replace('_', '-')}": value for name, value in older.items()}
    return read_options({**DEFAULTS, "trace-config": words, **fields}, environment or {})


def test_nothing_is_traced_unless_asked_for() -> None:
    assert read() == TraceOptions(selection=Selection((), 1000, -1, 0))


def test_files_are_described() -> None:
    options = read(
        "level=TIMESTAMPS", "level=TENSORS", "rate=2", "count=7", "triton,file=a=b,c.json", "triton,log-frequency=3"
    )

    assert options == TraceOptions(selection=Selection(("TIMESTAMPS", "TENSORS"), 2, 7, 3), file="a=b,c.json")


def test_opentelemetry_is_described() -> None:
    options = read(
        "mode=opentelemetry",
        "opentelemetry,url=http://collector:4318/v1/traces",
        "opentelemetry,resource=service.name=vision",
        "opentelemetry,resource=zone=a,b",
        "opentelemetry,bsp_max_queue_size=9",
        "opentelemetry,bsp_schedule_delay=8",
        "opentelemetry,bsp_max_export_batch_size=7",
    )

    resource = ("service.name=vision", "zone=a,b")
    assert options == TraceOptions(
        "opentelemetry", Selection(), "", "http://collector:4318/v1/traces", resource, 9, 8, 7
    )


@pytest.mark.parametrize(
    ("words", "levels"),
    [
        (("timestamps", "Tensors"), ("TIMESTAMPS", "TENSORS")),
        (("MAX",), ("TIMESTAMPS",)),
        (("min", "true", "on"), ("TIMESTAMPS",)),
        (("off",), ()),
        (("false",), ()),
    ],
)
def test_levels_may_be_written_in_any_case_and_as_they_were_once_called(
    words: tuple[str, ...], levels: tuple[str, ...]
) -> None:
    assert read(*(f"level={word}" for word in words)).selection.levels == levels
    assert read(level=words).selection.levels == levels


def test_a_mode_may_be_written_in_any_case() -> None:
    assert read("mode=OpenTelemetry").mode == "opentelemetry"


@pytest.mark.parametrize("url", ["localhost:4318/v1/traces", "https://collector", "http://[::1]:4318/v1/traces"])
def test_a_url_is_http_unless_it_says_otherwise(url: str) -> None:
    assert read(f"opentelemetry,url={url}").url == (url if "://" in url else f"http://{url}")


def test_the_last_of_several_counts_where_there_is_but_one() -> None:
    assert read("rate=2", "rate=3").selection.rate == 3


def test_variables_of_opentelemetry_count_where_no_option_does() -> None:
    environment = {
        "OTEL_BSP_SCHEDULE_DELAY": "100",
        "OTEL_BSP_MAX_QUEUE_SIZE": "",
        "OTEL_BSP_MAX_EXPORT_BATCH_SIZE": "5",
        "OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector:4318/",
    }

    options = read("mode=opentelemetry", "opentelemetry,bsp_max_export_batch_size=6", environment=environment)

    assert (options.bsp_schedule_delay, options.bsp_max_queue_size, options.bsp_max_export_batch_size) == (100, 2048, 6)
    assert options.url == "http://collector:4318/v1/traces"


@pytest.mark.parametrize("variable", ["OTEL_EXPORTER_OTLP_PROTOCOL", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"])
def test_another_protocol_than_http_is_warned_of(variable: str, caplog: pytest.LogCaptureFixture) -> None:
    read("mode=opentelemetry", environment={variable: "http/protobuf"})
    read("mode=triton", "triton,file=f", environment={variable: "grpc"})
    assert caplog.messages == []

    read("mode=opentelemetry", environment={variable: "grpc"})

    (message,) = caplog.messages
    assert message.startswith(f"{variable}=grpc has no effect: spans are exported with OTLP over HTTP (http/protobuf)")


def test_the_variable_for_traces_is_the_whole_url() -> None:
    environment = {"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://a/traces", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://b"}

    assert read("mode=opentelemetry", environment=environment).url == "http://a/traces"


@pytest.mark.parametrize(
    ("variable", "text"),
    [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "dns:///collector:4317"),
        ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "dns:///collector:4317"),
        ("OTEL_BSP_SCHEDULE_DELAY", "5s"),
    ],
)
def test_a_bad_variable_of_opentelemetry_is_a_mistake_in_its_mode_alone(variable: str, text: str) -> None:
    assert read(environment={variable: text}) == TraceOptions()

    with pytest.raises(UsageError, match=f"^the variable {variable}.*{text}"):
        read("mode=opentelemetry", environment={variable: text})


@pytest.mark.parametrize(
    ("older", "expected"),
    [
        ({"file": "t.json"}, TraceOptions(file="t.json")),
        (
            {"level": ("TIMESTAMPS", "TENSORS"), "file": "f"},
            TraceOptions("triton", Selection(("TIMESTAMPS", "TENSORS")), "f"),
        ),
        ({"rate": "5"}, TraceOptions(selection=Selection(rate=5))),
        ({"count": 6}, TraceOptions(selection=Selection(count=6))),
        ({"log_frequency": "7"}, TraceOptions(selection=Selection(log_frequency=7))),
    ],
)
def test_older_options_still_count_with_a_warning(
    older: dict[str, Any], expected: TraceOptions, caplog: pytest.LogCaptureFixture
) -> None:
    options = read(**older)

    warned = {record.getMessage().split(" ")[0] for record in caplog.records if record.levelno == logging.WARNING}
    assert (options, warned) == (expected, {f"--trace-{name.replace('_', '-')}" for name in older})


def test_trace_config_counts_more_than_an_older_option() -> None:
    assert read("rate=2", rate="5").selection.rate == 2


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("rate", "write KEY=VALUE"),
        ("xx,a=b", "write KEY=VALUE"),
        (",rate=1", "write KEY=VALUE"),
        ("foo=1", "the keys of no mode are mode, level, rate, count"),
        ("triton,foo=1", "the keys of mode triton are file, log-frequency"),
        ("file=x", "the keys of no mode"),
        ("mode=xx", "the modes are triton and opentelemetry"),
        ("level=FOO", "--trace-config level=FOO: unknown trace_level 'FOO'"),
        ("rate=x", "--trace-config rate=x: Unable to parse 'rate', got: x"),
        ("count=-2", "Expecting value >= -1"),
        ("triton,log-frequency=-1", "--trace-config triton,log-frequency=-1: Unable to parse"),
        ("opentelemetry,resource=x", "it must be KEY=VALUE"),
        ("opentelemetry,url=ftp://collector/v1/traces", "it must look like http://localhost:4318/v1/traces"),
        ("opentelemetry,url=http://collector:none/v1", "traces cannot be exported there"),
        ("opentelemetry,url=", "opentelemetry,url=: traces cannot be exported there"),
        ("opentelemetry,bsp_max_queue_size=0", "Expecting value >= 1"),
    ],
)
def test_mistakes_are_refused_with_what_there_is(word: str, message: str) -> None:
    with pytest.raises(InvalidArgumentError) as error:
        read(word)

    assert message in str(error.value)


def test_a_batch_that_the_queue_cannot_hold_is_refused() -> None:
    with pytest.raises(InvalidArgumentError, match="bsp_max_export_batch_size 512 is more than"):
        read("mode=opentelemetry", "opentelemetry,bsp_max_queue_size=9")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("level=TIMESTAMPS",), "there is no trace file"),
        (("mode=opentelemetry", "level=TENSORS"), "TENSORS has no effect"),
    ],
)
def test_what_has_no_effect_is_warned_of(
    words: tuple[str, ...], message: str, caplog: pytest.LogCaptureFixture
) -> None:
    read(*words)

    assert message in caplog.text


def test_the_fixed_settings_are_those_of_the_mode() -> None:
    of_files = read("triton,file=t.json").fixed()
    of_spans = read("mode=opentelemetry", "opentelemetry,resource=a=b").fixed()

    assert of_files == {"trace_mode": "triton", "trace_file": "t.json"}
    assert of_spans == {
        "trace_mode": "opentelemetry",
        "url": "http://localhost:4318/v1/traces",
        "resource": "a=b",
        "bsp_max_queue_size": "2048",
        "bsp_schedule_delay": "5000",
        "bsp_max_export_batch_size": "512",
    }
