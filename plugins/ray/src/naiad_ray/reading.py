"""Reader of `naiad-ray.yaml`: every mistake with file, line and key."""

from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ValidationError

from naiad import PluginRegistry
from naiad.errors import InvalidArgumentError
from naiad.options import Option
from naiad_ray.description import Autoscale, Description, Group, Grpc, Http, Scaled
from naiad_ray.settings import options_of

FILE_NAME = "naiad-ray.yaml"
_Key = tuple[str | int, ...]


def read_description(source: str | Path) -> Description:
    """The description in a file, or that of a folder: its `naiad-ray.yaml`, else one group with all of its models.

    The URL of a model store is a repository of models. Folders in the file are relative to it. Raises
    InvalidArgumentError that lists every mistake.
    """
    if "://" in str(source):
        return Description(repository=(str(source),))
    path = Path(source)
    if path.is_dir():
        if not (path / FILE_NAME).is_file():
            return Description(repository=(str(path.resolve()),))
        path = path / FILE_NAME
    try:
        text = path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidArgumentError(f"'{path}' cannot be read: {getattr(error, 'strerror', None) or error}") from error
    description = parse_description(text, str(path), PluginRegistry.discover().options())
    return _beside(description, path.resolve().parent)


def parse_description(text: str, source: str, declared: tuple[Option, ...] | None = None) -> Description:
    """The description in a YAML text. Raises InvalidArgumentError with a line for each mistake of `source`.

    `declared` are the options that a replica has; without them the keys `options` are not checked.
    """
    try:
        root = yaml.compose(text, yaml.SafeLoader)
        content = yaml.safe_load(text)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise InvalidArgumentError(f"{source}:{line}: {error.problem or 'is not valid YAML'}") from error
    except yaml.YAMLError as error:
        raise InvalidArgumentError(f"{source}: is not valid YAML: {error}") from error
    content = {} if content is None else content
    if not isinstance(content, Mapping):
        raise InvalidArgumentError(f"{source}:1: the file must be a mapping with the keys {_listed(Description)}")
    lines = dict(_lines(root, ()))
    try:
        description = Description.model_validate(content)
    except ValidationError as error:
        errors = error.errors()
        inner = {each["loc"][:depth] for each in errors for depth in range(len(each["loc"]))}
        problems = [_problem(each, lines, source) for each in errors if each["loc"] not in inner]
        raise InvalidArgumentError("\n".join(problems)) from error
    if declared is not None and (problems := list(_wrong_options(description, declared, lines, source))):
        raise InvalidArgumentError("\n".join(problems))
    return description


def _wrong_options(
    description: Description, declared: tuple[Option, ...], lines: Mapping[_Key, int], source: str
) -> Iterator[str]:
    """A line for each option of the file or a group that a replica cannot have."""
    sections: list[tuple[_Key, Mapping[str, Any]]] = [(("options",), description.options)]
    sections += [(("groups", index, "options"), group.options) for index, group in enumerate(description.groups)]
    for section, options in sections:
        for name, value in options.items():
            try:
                options_of({name: value}, declared)
            except InvalidArgumentError as error:
                line = lines.get((*section, name), 1)
                yield f"{source}:{line}: {_path(section).removesuffix(': ').removesuffix('options')}{error}"


def _lines(node: yaml.Node | None, key: _Key) -> Iterator[tuple[_Key, int]]:
    """The line of each key, and of each item of a list."""
    if isinstance(node, yaml.MappingNode):
        for name, value in node.value:
            yield (*key, str(name.value)), name.start_mark.line + 1
            yield from _lines(value, (*key, str(name.value)))
    elif isinstance(node, yaml.SequenceNode):
        for index, value in enumerate(node.value):
            yield (*key, index), value.start_mark.line + 1
            yield from _lines(value, (*key, index))


def _problem(error: Any, lines: Mapping[_Key, int], source: str) -> str:
    location: _Key = error["loc"]
    known = location
    while known and known not in lines:
        known = known[:-1]
    message = str(error["msg"]).removeprefix("Value error, ")
    if error["type"] == "extra_forbidden":
        message = _unknown(location)
    elif error["type"] != "value_error":
        message = message[0].lower() + message[1:]
        if error["type"] != "missing":
            message += f", and is {error['input']!r}"
    return f"{source}:{lines.get(known, 1)}: {_path(location)}{message}"


def _path(location: _Key) -> str:
    """A key as people write it: `groups[0].replicas: `."""
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in location).removeprefix(".")
    return f"{text}: " if text else ""


def _unknown(location: _Key) -> str:
    section = _SECTIONS.get(tuple(part for part in location[:-1] if not isinstance(part, int)), Description)
    near = get_close_matches(str(location[-1]), section.model_fields, n=1)
    return "there is no such key; " + (f"did you mean {near[0]}?" if near else f"the keys are {_listed(section)}")


_SECTIONS: Mapping[tuple[str | int, ...], type[BaseModel]] = {
    (): Description,
    ("http",): Http,
    ("grpc",): Grpc,
    ("front_desk",): Scaled,
    ("front_desk", "autoscale"): Autoscale,
    ("groups",): Group,
    ("groups", "autoscale"): Autoscale,
}


def _listed(section: type[BaseModel]) -> str:
    return ", ".join(section.model_fields)


def _beside(description: Description, folder: Path) -> Description:
    """The description with absolute folders: relative ones are beside the file. URLs of stores stay as they are."""

    def absolute(folders: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(each if "://" in each else str((folder / each).resolve()) for each in folders)

    groups = tuple(group.model_copy(update={"repository": absolute(group.repository)}) for group in description.groups)
    return description.model_copy(update={"repository": absolute(description.repository), "groups": groups})
