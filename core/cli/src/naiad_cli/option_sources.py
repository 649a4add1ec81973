"""Options that are not on the command line: variables such as `NAIAD_HTTP_PORT`, and below them a TOML file.

A variable of the environment is an option's name in capitals, `-` as `_`, behind `NAIAD_`; a repeatable option has a
value on each line of it. In the file an option is a key, and a repeatable one an array.
"""

import json
import os
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from naiad.errors import UsageError
from naiad.options import Option
from naiad_cli.options import convert_text
from naiad_cli.parser import did_you_mean

OPTIONS_FILE = Option("options", "", "a TOML file of options, as http-port = 8000", metavar="FILE")
"""The option that names the file."""

_OF_KUBERNETES = re.compile(r"(tcp|udp|sctp)://")
"""How a variable begins that Kubernetes sets for a Service, such as NAIAD_HTTP_PORT for one called naiad-http."""


_OF_A_SERVICE = re.compile(r"_SERVICE_(HOST|PORT(_\w+)?)$|_PORT_\d+_(TCP|UDP|SCTP)(_(ADDR|PORT|PROTO))?$")
"""How the names of the other variables end that Kubernetes sets for a Service."""

_PREFIX = "NAIAD_"
_OF_OTHERS = ("url", "header", "ca-file", "metrics-url", "supervisor", "packages")
"""Variables that are no options of `serve`: those of the commands that ask a server, and of its own processes."""


def variable_of(name: str) -> str:
    """The variable of an option: `NAIAD_HTTP_PORT` of `http-port`."""
    return f"{_PREFIX}{name.upper().replace('-', '_')}"


def unknown_variables(
    options: Sequence[Option], environment: Mapping[str, str], what_to_install: Callable[[str], str]
) -> Iterator[str]:
    """A sentence for each variable that begins as one of ours and is none: it may be misspelt, and changes nothing.

    `what_to_install` gives a sentence for the name of an option, "" for one that no known distribution has.
    """
    known = {variable_of(name): name for name in (*(option.name for option in options), *_OF_OTHERS)}
    for variable, text in sorted(environment.items()):
        if not variable.startswith(_PREFIX) or variable in known:
            continue
        if _OF_KUBERNETES.match(text) or _OF_A_SERVICE.search(variable):
            continue
        name = variable.removeprefix(_PREFIX).lower().replace("_", "-")  # without what is common to all
        near = get_close_matches(name, known.values(), n=1)
        meant = f"; did you mean {variable_of(near[0])}?" if near else "; naiad serve --help=all lists the options"
        advice = what_to_install(name)
        yield f"the variable {variable} of the environment is not an option{f'. {advice}' if advice else meant}"


def sourced_values(
    options: Sequence[Option], known: Sequence[Option], values: Mapping[str, Any], environment: Mapping[str, str]
) -> dict[str, Any]:
    """The values of `options`, those of the command line first, then those of variables, then those of the file.

    The file may have every option that is `known`. Raises UsageError for a bad value, with the variable or the file and
    its line, and for a key that is not known.
    """
    from_variables = dict(_from_variables((*options, OPTIONS_FILE), environment))
    of_variable = from_variables.pop(OPTIONS_FILE.name, "")
    path = values.get(OPTIONS_FILE.name) or of_variable
    source = f"--{OPTIONS_FILE.name}" if values.get(OPTIONS_FILE.name) else variable_of(OPTIONS_FILE.name)
    from_file = _from_file(Path(path), known, source) if path else {}
    names = {option.name for option in options}
    return {name: value for name, value in {**from_file, **from_variables, **values}.items() if name in names}


def from_variable(name: str, default: str, environment: Mapping[str, str] = os.environ) -> str:
    """The value of an option that has a variable in every command, such as `NAIAD_URL`."""
    return environment.get(variable_of(name), "") or default


def _from_variables(options: Sequence[Option], environment: Mapping[str, str]) -> Iterator[tuple[str, Any]]:
    for option in options:
        variable = variable_of(option.name)
        text = environment.get(variable)
        if not text or (_OF_KUBERNETES.match(text) and not isinstance(option.default, str | tuple)):
            continue
        lines = [line.strip() for line in text.splitlines() if line.strip()] if option.repeatable else [text]
        converted = tuple(_converted(option, line, variable) for line in lines)
        yield option.name, converted if option.repeatable else converted[0]


def _from_file(path: Path, options: Sequence[Option], source: str) -> dict[str, Any]:
    try:
        text = path.read_text(encoding="utf-8-sig")  # editors of Windows put a byte order mark in front
        document = tomllib.loads(text)
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise UsageError(f"{source}: '{path}' cannot be read: {reason}") from error
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{_located(path, str(error))}; write one option on each line, as http-port = 8000") from error
    by_name = {option.name: option for option in options if option is not OPTIONS_FILE}
    values = {}
    for key, value in document.items():
        location, name = f"{path}:{_line(text, key)}", key.replace("_", "-")
        option = by_name.get(name)
        if isinstance(value, dict):
            raise UsageError(f"{location}: '{key}' is a table; write each option without one, as http-port = 8000")
        if name == OPTIONS_FILE.name:
            raise UsageError(f"{location}: an options file names no other; write the options of both into one file")
        if option is None:
            raise UsageError(f"{location}: unknown option '{key}'{did_you_mean(name, list(by_name))}")
        words = value if isinstance(value, list) else [value]
        if (isinstance(value, list) and not option.repeatable) or any(isinstance(word, dict | list) for word in words):
            raise UsageError(f"{location}: {key} takes {_what_it_takes(option)}")
        converted = tuple(_converted(option, _text(word), f"{location}: {key}") for word in words)
        values[name] = converted if option.repeatable else converted[0]
    return values


def _what_it_takes(option: Option) -> str:
    """The kind of an option's value in the file, with a line; the form of its texts and truth values is JSON's too."""
    if option.repeatable:
        return f'an array of texts, as {option.name} = ["{option.metavar or "TEXT"}"]'
    return f"one text, number or truth value, as {option.name} = {json.dumps(option.default)}"


def _located(path: Path, error: str) -> str:
    """An error of tomllib, which ends with "(at line 1, column 12)", with the line behind the file."""
    match = re.fullmatch(r"(.*) \(at line (\d+), column (\d+)\)", error, re.DOTALL)
    return f"{path}:{match[2]}:{match[3]}: {match[1]}" if match else f"{path}: {error}"


def _converted(option: Option, text: str, location: str) -> Any:
    try:
        return convert_text(option, text)
    except ValueError as error:
        raise UsageError(f"{location}: {error}") from error


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _line(text: str, key: str) -> int:
    """The line of a key; 1 for one that is written in another way."""
    pattern = re.compile(rf"\s*[\"']?{re.escape(key)}[\"']?\s*[=.]|\s*\[\s*{re.escape(key)}\b")
    return next((number for number, line in enumerate(text.splitlines(), 1) if pattern.match(line)), 1)
