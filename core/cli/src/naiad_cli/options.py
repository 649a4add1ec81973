"""Server options on the command line: `--name=value`, `--name value`, and a bare `--name` for a switch."""

import argparse
from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any

from naiad.errors import UsageError
from naiad.options import Option
from naiad_cli.parser import did_you_mean

ALIASES: Mapping[str, str] = {"model-store": "model-repository"}
"""Other names that users of Triton know for some options."""


def add_options(parser: argparse.ArgumentParser, options: Sequence[Option], title: str | None) -> None:
    """Declare the options under a heading of the parser's help; without one (None) the help leaves them out."""
    group = parser.add_argument_group(title)
    for option in options:
        group.add_argument(
            *option_names(option),
            dest=option.name,
            type=_converter(option),
            action="append" if option.repeatable else "store",
            choices=option.choices or None,
            metavar=_metavar(option),
            default=argparse.SUPPRESS,
            help=argparse.SUPPRESS if title is None else describe_option(option).replace("%", "%%"),
        )


def option_names(option: Option) -> list[str]:
    """The names of an option on the command line, with dashes: its own, and those that users of Triton know."""
    return [f"--{option.name}", *(f"--{alias}" for alias, name in ALIASES.items() if name == option.name)]


def chosen_values(options: Sequence[Option], arguments: argparse.Namespace) -> dict[str, Any]:
    """The values of the options that were given, by name; repeatable ones as tuples."""
    values = {option.name: getattr(arguments, option.name) for option in options if hasattr(arguments, option.name)}
    return {name: tuple(value) if isinstance(value, list) else value for name, value in values.items()}


def in_order(
    words: Sequence[str], options: Sequence[Option], is_plain: Callable[[str], bool] = lambda word: True
) -> list[str]:
    """The words with every option as `--name=value`, and all plain words after them.

    argparse alone would take the plain word after a bare switch for its value, and no plain words in two places. A name
    may be shortened as long as it is no other's beginning, as getopt_long has it and so Triton. A word behind a bare
    switch that is neither its value nor an option must be one that `is_plain`: raises UsageError for another.
    """
    named = {f"--{option.name}": option for option in options}
    named |= {f"--{alias}": named[f"--{name}"] for alias, name in ALIASES.items() if f"--{name}" in named}
    switches: list[str] = []
    plain: list[str] = []
    remaining = list(words)
    while remaining:
        word = remaining.pop(0)
        if word == "--":
            return [*switches, word, *plain, *remaining]
        name, equals, value = word.partition("=")
        name = _full_name(name, named)
        option = named.get(name)
        if option is not None and equals:
            switches.append(f"{name}={value}")
        elif option is not None and _is_switch(option):
            following = remaining[0] if remaining else "--"
            if _converts(option, following):
                switches.append(f"{name}={remaining.pop(0)}")
            elif following.startswith("-") or is_plain(following):
                switches.append(f"{name}=true")
            else:
                raise UsageError(f"{name} {following}: '{following}' is not a value of {name}, nor a file or folder")
        elif option is not None and remaining:
            switches.append(f"{name}={remaining.pop(0)}")
        else:
            (switches if word.startswith("-") else plain).append(word)
    return [*switches, *plain]


def _full_name(name: str, named: Mapping[str, Option]) -> str:
    """The one name that `name` is the beginning of, or the name itself."""
    if name in named or not name.startswith("--"):
        return name
    names = [each for each in named if each.startswith(name)]
    return names[0] if len({named[each].name for each in names}) == 1 else name


def refuse_unknown(
    words: Sequence[str], options: Sequence[Option], what_to_install: Callable[[str], str], command: str = "serve"
) -> None:
    """Raise UsageError for the first word that is an option: what to install, or which options are near.

    `what_to_install` gives a sentence for the name of an option, "" for one that no known distribution has.
    """
    for word in words:
        if not word.startswith("-"):
            continue
        name = word.lstrip("-").split("=", 1)[0]
        longer = [f"--{option.name}" for option in options if option.name.startswith(name)]
        if len(longer) > 1:
            raise UsageError(f"option --{name} is ambiguous: it may be {' or '.join(longer)}")
        near = get_close_matches(name, [option.name for option in options], n=1)
        advice = what_to_install(name)
        if not advice:
            advice = f"Did you mean --{near[0]}?" if near else f"See naiad {command} --help for those there are."
        raise UsageError(f"unknown option --{name}. {advice}")


def _is_switch(option: Option) -> bool:
    """Whether a bare `--name` has a meaning: options that are true or false, and counts that take `true` for 1."""
    return isinstance(option.default, bool | int) and _converts(option, "true")


def _converts(option: Option, text: str) -> bool:
    try:
        option.type(text)
    except ValueError:
        return False
    return True


def convert_text(option: Option, text: str) -> Any:
    """The value that a text stands for. Raises ValueError with a sentence for one that it cannot be."""
    if option.choices:
        choice = next((choice for choice in option.choices if choice.lower() == text.lower()), None)
        if choice is None:
            listed = ", ".join(f"'{choice}'" for choice in option.choices)
            near = did_you_mean(text.lower(), option.choices)
            raise ValueError(f"invalid choice: '{text}' (choose from {listed}){near}")
        text = choice
    try:
        return option.type(text)
    except ValueError as error:
        raise ValueError(_in_plain_words(str(error), option, text)) from error


def _in_plain_words(error: str, option: Option, text: str) -> str:
    """The error of `int` or `float` as a sentence with what to write; any other as it is."""
    example = str(option.default) if isinstance(option.default, int | float) else "8"
    if error.startswith("invalid literal for int"):
        return f"'{text}' is not a whole number; write one such as {example}"
    if error.startswith("could not convert string to float"):
        return f"'{text}' is not a number; write one such as {example}"
    return error


def _converter(option: Option) -> Callable[[str], Any]:
    def convert(text: str) -> Any:
        try:
            return convert_text(option, text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from error

    return convert


def metavar_of(option: Option) -> str:
    """What the help writes for the value of an option, such as `PORT` or `{none,poll}`."""
    return _metavar(option) or f"{{{','.join(option.choices)}}}"


def _metavar(option: Option) -> str | None:
    if option.metavar or option.choices:
        return option.metavar or None
    if isinstance(option.default, bool):
        return "BOOL"
    return "N" if isinstance(option.default, int) else "TEXT"


def describe_option(option: Option) -> str:
    """The help of an option, with its default; a switch that is off unless it is written has none."""
    if option.repeatable:
        return option.help if "several" in option.help else f"{option.help}; may be given several times"
    if isinstance(option.default, bool):
        default = "true" if option.default else ""
    else:
        default = "" if option.default == () else str(option.default)
    return f"{option.help} (default: {default})" if default else option.help
