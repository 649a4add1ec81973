"""Options in variables of the environment and in a file."""

import re
from pathlib import Path

import pytest

from naiad import PluginRegistry
from naiad.errors import UsageError
from naiad.options import Option, boolean, port
from naiad_cli.option_sources import OPTIONS_FILE, sourced_values, unknown_variables, variable_of
from naiad_cli.serve_options import every_option

PORT = Option("http-port", 8000, "where to listen", port)
STRICT = Option("strict", True, "be strict", boolean)
CONFIG = Option("backend-config", (), "a setting", repeatable=True)
MODE = Option("mode", "none", "how", choices=("none", "poll"))
OPTIONS = (PORT, STRICT, CONFIG, MODE)


def options_file(folder: Path, text: str) -> str:
    path = folder / "naiad.toml"
    path.write_text(text)
    return str(path)


def test_the_command_line_counts_before_variables_and_these_before_the_file(tmp_path: Path) -> None:
    path = options_file(tmp_path, 'http-port = 1\nstrict = false\nmode = "poll"\nbackend-config = ["a=b", "c=d"]\n')
    environment = {"NAIAD_HTTP_PORT": "2", "NAIAD_STRICT": "true", "NAIAD_OPTIONS": path}

    values = sourced_values(OPTIONS, OPTIONS, {"http-port": 3}, environment)

    assert values == {"http-port": 3, "strict": True, "mode": "poll", "backend-config": ("a=b", "c=d")}


def test_a_repeatable_option_has_a_value_on_each_line_of_its_variable() -> None:
    values = sourced_values(OPTIONS, OPTIONS, {}, {"NAIAD_BACKEND_CONFIG": "onnx,a=b c\n\n d=e\n"})

    assert values == {"backend-config": ("onnx,a=b c", "d=e")}


def test_the_port_that_kubernetes_sets_for_a_service_is_not_ours() -> None:
    values = sourced_values(OPTIONS, OPTIONS, {}, {"NAIAD_HTTP_PORT": "tcp://10.0.0.1:8000"})

    assert values == {}


def test_a_byte_order_mark_in_front_of_the_file_is_no_mistake(tmp_path: Path) -> None:
    path = options_file(tmp_path, "\ufeffstrict = false\n")

    assert sourced_values((STRICT,), OPTIONS, {"options": path}, {}) == {"strict": False}


def test_options_of_another_command_in_the_file_are_known_and_not_taken(tmp_path: Path) -> None:
    path = options_file(tmp_path, "http-port = 1\nstrict = false\n")

    assert sourced_values((STRICT,), OPTIONS, {"options": path}, {}) == {"strict": False}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("http-port = 1\nhttp_prt = 2\n", "naiad.toml:2: unknown option 'http_prt'; did you mean 'http-port'?"),
        ("[serve]\nhttp-port = 1\n", "naiad.toml:1: 'serve' is a table; write each option without one, as http-port ="),
        ("mode = 'poll'\noptions = 'x'\n", "naiad.toml:2: an options file names no other"),
        ("http-port = [1]\n", "naiad.toml:1: http-port takes one text, number or truth value, as http-port = 8000"),
        ("strict = [true]\n", "naiad.toml:1: strict takes one text, number or truth value, as strict = true"),
        ("backend-config = {a = 1}\n", "naiad.toml:1: 'backend-config' is a table"),
        ("backend-config = [['a']]\n", 'naiad.toml:1: backend-config takes an array of texts, as backend-config = ["'),
        ("\nhttp-port = 'x'\n", "naiad.toml:2: http-port: 'x' is not a whole number; write one such as 8000"),
        ("http-port = 1.5\n", "naiad.toml:1: http-port: '1.5' is not a whole number"),
        ("strict = 'x'\n", "naiad.toml:1: strict: 'x' is none of true, false, 1"),
        ("http-port 1\n", "naiad.toml:1:11: Expected '=' after a key in a key/value pair; write one"),
        ("mode = 'pol'\n", "naiad.toml:1: mode: invalid choice: 'pol'"),
    ],
)
def test_a_mistake_in_the_file_is_named_with_its_line(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(UsageError) as raised:
        sourced_values(OPTIONS, (*OPTIONS, OPTIONS_FILE), {"options": options_file(tmp_path, text)}, {})

    assert message in str(raised.value)


def test_a_file_that_is_not_there_and_a_bad_variable_are_named() -> None:
    with pytest.raises(UsageError, match=r"^--options: 'no/such.toml' cannot be read: No such file or directory$"):
        sourced_values(OPTIONS, OPTIONS, {"options": "no/such.toml"}, {})
    with pytest.raises(UsageError, match=r"^NAIAD_OPTIONS: 'no/such.toml' cannot be read: No such file or directory$"):
        sourced_values(OPTIONS, OPTIONS, {}, {"NAIAD_OPTIONS": "no/such.toml"})
    with pytest.raises(UsageError, match="NAIAD_STRICT: 'maybe'"):
        sourced_values(OPTIONS, OPTIONS, {}, {"NAIAD_STRICT": "maybe"})


EVERY_OPTION = [option for option in every_option(PluginRegistry.discover()) if option is not OPTIONS_FILE]
SAYS_WHAT_IS_ALLOWED = re.compile(
    r"; write |\(choose from |; they go from 0|is not between|must be greater than 0|must be 0 or greater"
    r"|must be a number of seconds greater than 0|is none of |must be NAME:COUNT| such as "
)


@pytest.mark.parametrize("option", EVERY_OPTION, ids=lambda option: option.name)
def test_a_wrong_value_of_each_option_is_refused_with_what_is_allowed(option: Option) -> None:
    variable = variable_of(option.name)

    refusals = {text: refusal_of(option, variable, text) for text in ("?", "-1", "1,5", "nan")}

    for text, refusal in refusals.items():
        assert not refusal or refusal.startswith(f"{variable}: ")
        assert not refusal or f"'{text}'" in refusal
        assert not refusal or SAYS_WHAT_IS_ALLOWED.search(refusal)
    if isinstance(option.default, bool | int | float):
        assert refusals["?"]
        assert refusals["1,5"]


def refusal_of(option: Option, variable: str, text: str) -> str:
    """The message for a value of a variable, "" for one that the option takes."""
    try:
        sourced_values((option,), (option,), {}, {variable: text})
    except UsageError as error:
        return str(error)
    return ""


def test_a_verbosity_that_is_none_says_which_levels_there_are() -> None:
    with pytest.raises(UsageError, match=r"^NAIAD_LOG_VERBOSE: 'abc' is none of the levels 0, 1, 2, true, false$"):
        sourced_values(EVERY_OPTION, EVERY_OPTION, {}, {"NAIAD_LOG_VERBOSE": "abc"})


def install_grpc(name: str) -> str:
    return "It comes with naiad-grpc." if name == "grpc-port" else ""


def test_variables_that_are_no_options_are_named_with_the_nearest_one() -> None:
    environment = {"NAIAD_HTP_PORT": "1", "NAIAD_GRPC_PORT": "2", "NAIAD_FOO": "x", "NAIAD_MODE": "poll", "PATH": "/"}

    sentences = list(unknown_variables(OPTIONS, environment, install_grpc))

    assert sentences == [
        "the variable NAIAD_FOO of the environment is not an option; naiad serve --help=all lists the options",
        "the variable NAIAD_GRPC_PORT of the environment is not an option. It comes with naiad-grpc.",
        "the variable NAIAD_HTP_PORT of the environment is not an option; did you mean NAIAD_HTTP_PORT?",
    ]


def test_variables_of_other_commands_and_of_kubernetes_are_not_reported() -> None:
    service = {
        "NAIAD_PORT": "tcp://10.0.0.1:8000",
        "NAIAD_SERVICE_HOST": "10.0.0.1",
        "NAIAD_SERVICE_PORT_HTTP": "8000",
        "NAIAD_PORT_8000_TCP": "tcp://10.0.0.1:8000",
        "NAIAD_PORT_8000_TCP_ADDR": "10.0.0.1",
        "NAIAD_PORT_8000_TCP_PROTO": "tcp",
        "NAIAD_HTTP_SERVICE_PORT": "8000",
    }
    ours = {"NAIAD_URL": "http://a", "NAIAD_HEADER": "a: b", "NAIAD_METRICS_URL": "http://a", "NAIAD_SUPERVISOR": "1:2"}

    assert list(unknown_variables(OPTIONS, service | ours, install_grpc)) == []
