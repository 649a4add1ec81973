"""Server options as words on the command line."""

import pytest

from naiad import PluginRegistry
from naiad.errors import InvalidArgumentError
from naiad.options import Option, boolean
from naiad_cli.options import add_options, chosen_values, in_order, refuse_unknown
from naiad_cli.parser import Parser

OPTIONS = (
    Option("port", 8000, "where to listen", int),
    Option("strict", True, "be strict", boolean),
    Option("quiet", False, "say nothing", boolean),
    Option("name", "", "who"),
    Option("load", (), "a model", repeatable=True),
    Option("hosts", (), "names", lambda text: tuple(text.split(","))),
    Option("mode", "none", "how", choices=("none", "poll")),
)


def parsed(*words: str) -> dict[str, object]:
    parser = Parser("serve", rewrite=lambda given_words: in_order(given_words, OPTIONS))
    parser.add_argument("folders", nargs="*")
    add_options(parser, OPTIONS, "options")
    arguments = parser.parse_args(words)
    return chosen_values(OPTIONS, arguments) | {"folders": arguments.folders}


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ((), {}),
        (("--port=1",), {"port": 1}),
        (("--port", "1"), {"port": 1}),
        (("--strict=false",), {"strict": False}),
        (("--strict", "false"), {"strict": False}),
        (("--strict", "0"), {"strict": False}),
        (("--quiet",), {"quiet": True}),
        (("--quiet", "--strict", "--port=1"), {"quiet": True, "strict": True, "port": 1}),
        (("--name=a=b",), {"name": "a=b"}),
        (("--load=a", "--load", "b"), {"load": ("a", "b")}),
        (("--mode=POLL",), {"mode": "poll"}),
        (("--po=1", "--st"), {"port": 1, "strict": True}),
    ],
)
def test_options_are_read_in_every_way_of_writing_them(words: tuple[str, ...], expected: dict[str, object]) -> None:
    result = parsed(*words)

    assert result == expected | {"folders": []}


def test_a_bare_switch_leaves_the_next_word_alone() -> None:
    result = parsed("--quiet", "models", "--strict", "more")

    assert result == {"quiet": True, "strict": True, "folders": ["models", "more"]}


def test_verbosity_is_a_switch_too() -> None:
    words = in_order(["--log-verbose", "models"], PluginRegistry.of([]).options())

    assert words == ["--log-verbose=true", "models"]


def test_an_option_has_the_other_name_that_users_of_triton_know() -> None:
    words = in_order(["models", "--model-store", "more", "--", "--odd"], PluginRegistry.of([]).options())

    assert words == ["--model-store=more", "--", "models", "--odd"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--port=x"], "argument --port: 'x' is not a whole number; write one such as 8000"),
        (["--strict=maybe"], "argument --strict: 'maybe'"),
        (["--mode=push"], "argument --mode: invalid choice: 'push' (choose from 'none', 'poll')"),
        (
            ["--mode=polll"],
            "argument --mode: invalid choice: 'polll' (choose from 'none', 'poll'); did you mean 'poll'?",
        ),
        (["--port"], "argument --port: expected one argument"),
        (["--strict", "false", "--port", "--strict"], "argument --port: '--strict' is not a whole number"),
        (["--pot=1"], "unrecognized arguments: --pot=1"),
    ],
)
def test_a_mistake_is_reported_with_status_2(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as exited:
        parsed(*words)

    assert exited.value.code == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("--prot=1", "unknown option --prot. Did you mean --port?"),
        ("--xyzzy", "unknown option --xyzzy. See naiad serve --help for those there are."),
        ("--kites=1", "unknown option --kites. It comes with naiad-kites."),
        ("--l=1", "option --l is ambiguous: it may be --load or --log"),
    ],
)
def test_an_unknown_option_is_answered_with_what_to_install_or_which_is_near(word: str, message: str) -> None:
    known = {"kites": "It comes with naiad-kites."}

    with pytest.raises(InvalidArgumentError) as caught:
        refuse_unknown(["value", word], [*OPTIONS, Option("log", "", "what")], lambda name: known.get(name, ""))

    assert str(caught.value) == message


def test_the_help_names_defaults_that_one_could_write() -> None:
    parser = Parser("serve")
    add_options(parser, OPTIONS, "options")

    lines = [" ".join(line.split()) for line in parser.format_help().splitlines()]

    assert "--port N where to listen (default: 8000)" in lines
    assert "--strict BOOL be strict (default: true)" in lines
    assert "--hosts TEXT names" in lines
