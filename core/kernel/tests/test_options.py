"""Options and their values."""

import pytest

from naiad._plugins.kernel_options import KERNEL_OPTIONS
from naiad.errors import InvalidArgumentError
from naiad.options import Option, Settings, boolean, port, positive

PORT = Option("port", 8000, "where to listen", int)
NAMES = Option("name", (), "who", repeatable=True)
OPTIONS = {option.name: option for option in KERNEL_OPTIONS}


@pytest.mark.parametrize("text", ["true", "True", " 1 ", "YES", "on"])
def test_yes_has_many_words(text: str) -> None:
    assert boolean(text) is True


@pytest.mark.parametrize("text", ["false", "False", " 0 ", "NO", "off"])
def test_no_has_many_words(text: str) -> None:
    assert boolean(text) is False


def test_a_word_that_is_neither_is_refused() -> None:
    with pytest.raises(ValueError, match="'maybe' is none of true, false, 1, 0, yes, no, on, off"):
        boolean("maybe")


def test_a_port_is_a_number_of_two_bytes() -> None:
    assert [port("0"), port("65535")] == [0, 65535]
    for text in ("-1", "65536"):
        with pytest.raises(ValueError, match=f"'{text}' is not a port number"):
            port(text)


def test_a_positive_number_starts_at_one() -> None:
    assert positive("1") == 1
    with pytest.raises(ValueError, match="'0' must be greater than 0"):
        positive("0")


def test_settings_hold_the_given_values_and_the_defaults() -> None:
    settings = Settings([PORT, NAMES], {"port": 9000})

    assert dict(settings) == {"port": 9000, "name": ()}
    assert len(settings) == 2


def test_a_value_that_is_none_of_the_choices_is_refused() -> None:
    mode = Option("mode", "off", "which", choices=("off", "low", "high"))

    assert Settings([mode], {"mode": "low"})["mode"] == "low"
    with pytest.raises(InvalidArgumentError, match="option 'mode' must be one of off, low, high, not 'medium'"):
        Settings([mode], {"mode": "medium"})


def test_an_unknown_setting_is_refused_with_what_there_is() -> None:
    with pytest.raises(InvalidArgumentError, match="unknown option 'prot'; the options are name, port"):
        Settings([PORT, NAMES], {"prot": 9000})


def test_a_setting_of_the_right_kind_is_given() -> None:
    assert Settings([PORT], {}).value("port", int) == 8000


def test_a_setting_of_another_kind_is_refused() -> None:
    with pytest.raises(InvalidArgumentError, match=r"option 'port' must be int, not 'http'"):
        Settings([PORT], {"port": "http"}).value("port", int)


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("repository-poll-secs", "0.5", 0.5),
        ("exit-timeout-secs", "0", 0.0),
        ("model-load-thread-count", "8", 8),
        ("model-load-retry-count", "0", 0),
        ("strict-readiness", "false", False),
        ("exit-on-error", "1", True),
        ("disable-auto-complete-config", "yes", True),
        ("log-verbose", "2", 2),
        ("log-verbose", "true", 1),
    ],
)
def test_the_text_of_a_kernel_option_becomes_its_value(name: str, text: str, value: object) -> None:
    assert OPTIONS[name].type(text) == value


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("repository-poll-secs", "-1"),
        ("exit-timeout-secs", "nan"),
        ("exit-timeout-secs", "inf"),
        ("exit-timeout-secs", "soon"),
        ("model-load-thread-count", "0"),
        ("model-load-retry-count", "-1"),
        ("model-load-retry-count", "1.5"),
        ("strict-readiness", "strictly"),
        ("log-verbose", "-1"),
        ("log-verbose", "loud"),
    ],
)
def test_a_senseless_text_of_a_kernel_option_is_refused(name: str, text: str) -> None:
    with pytest.raises(ValueError, match=text):
        OPTIONS[name].type(text)


@pytest.mark.parametrize("option", KERNEL_OPTIONS, ids=lambda option: option.name)
def test_a_default_of_the_kernel_is_a_value_that_its_own_text_gives(option: Option) -> None:
    if option.repeatable:
        assert option.default == ()
    else:
        assert option.type(str(option.default)) == option.default


def test_no_kernel_option_is_there_twice() -> None:
    assert len(OPTIONS) == len(KERNEL_OPTIONS)
