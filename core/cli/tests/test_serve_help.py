"""The help of `naiad serve`: its first page, and what a word behind `--help` shows."""

import re

import pytest

from naiad import PluginRegistry
from naiad.errors import UsageError
from naiad.options import Option, boolean
from naiad_cli.main import main
from naiad_cli.serve_help import COMMON, OptionGroup, help_text, with_topic
from naiad_cli.serve_options import every_option

GROUPS = (
    OptionGroup(
        "server", "options of the server", [Option("model-repository", (), "a folder of models", metavar="DIR")]
    ),
    OptionGroup(
        "http",
        "options of plugin http",
        [
            Option("http-port", 8000, "the port for HTTP", int, "PORT"),
            Option("http-use-ssl", False, "serve HTTP over TLS", boolean),
            Option("http-idle-seconds", 75.0, "how long a connection may say nothing", float, "SECS"),
        ],
    ),
    OptionGroup("kites", "options of plugin kites", [Option("kite-mode", "up", "where", choices=("up", "down"))]),
)


def options_in(text: str) -> list[str]:
    """The options that have a row in the help."""
    return re.findall(r"^  --([a-z0-9-]+)", text, re.MULTILINE)


def test_the_first_page_has_the_common_options_and_says_how_to_see_the_others() -> None:
    text = help_text("", GROUPS, 78)

    assert options_in(text)[:3] == ["model-repository", "http-port", "http-use-ssl"]
    assert "--http-idle-seconds" not in text
    assert "all 5 of them" in text
    assert "server 1, http 3, kites 1" in " ".join(text.split())


def test_the_first_page_of_every_plugin_is_short_and_has_no_option_that_is_not_there() -> None:
    registry = PluginRegistry.discover()
    every = every_option(registry)
    listed = [name for names in COMMON.values() for name in names]

    text = help_text("", [OptionGroup("server", "options", every)], 78)

    assert len(text.splitlines()) <= 80
    assert max(map(len, text.splitlines())) <= 78
    assert set(listed) <= {option.name for option in every}
    assert options_in(text)[: len(listed)] == listed


@pytest.mark.parametrize(
    ("topic", "options"),
    [
        ("http", ["http-port", "http-use-ssl", "http-idle-seconds"]),
        ("naiad-http", ["http-port", "http-use-ssl", "http-idle-seconds"]),
        ("TLS", ["http-use-ssl"]),
        ("--http-port", ["http-port"]),
        ("model_repository", ["model-repository"]),
        ("model-store", ["model-repository"]),
        ("all", ["model-repository", "http-port", "http-use-ssl", "http-idle-seconds", "kite-mode"]),
    ],
)
def test_a_word_shows_the_options_of_a_plugin_or_those_with_that_word(topic: str, options: list[str]) -> None:
    assert options_in(help_text(topic, GROUPS, 78)) == options


def test_a_row_has_the_values_and_the_default() -> None:
    lines = [" ".join(line.split()) for line in help_text("all", GROUPS, 78).splitlines()]

    assert "--http-port PORT the port for HTTP (default: 8000)" in lines
    assert "--http-use-ssl BOOL serve HTTP over TLS" in lines
    assert "--kite-mode {up,down} where (default: up)" in lines


def test_a_word_that_no_option_has_is_answered_with_the_nearest() -> None:
    with pytest.raises(UsageError) as caught:
        help_text("htpp", GROUPS, 78)

    assert str(caught.value) == "no option has the word 'htpp'; did you mean 'http'?"


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["models", "--help"], ["models", "--help="]),
        (["-h", "grpc", "--reload"], ["--help=grpc", "--reload"]),
        (["--help=all"], ["--help=all"]),
        (["--", "--help"], ["--", "--help"]),
    ],
)
def test_the_word_behind_help_is_its_topic(words: list[str], expected: list[str]) -> None:
    assert with_topic(words) == expected


@pytest.mark.parametrize(
    "words", [["serve", "--help", "server"], ["help", "serve", "server"], ["serve", "--help=server"]]
)
def test_the_command_shows_a_group(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exited:
        main(words)

    assert exited.value.code == 0
    assert "--lame-duck-secs" in capsys.readouterr().out
