"""What the tests share: the parts of a valid configuration, the problems of a text, and installed backends."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from naiad_config.text import parse_text
from naiad_config.validation import problems

VALID = 'name: "m" backend: "b" max_batch_size: 8 '
INPUT = 'input { name: "x" data_type: TYPE_FP32 dims: 4 } '
OUTPUT = 'output { name: "y" data_type: TYPE_FP32 dims: 4 } '


def problems_of(text, **options):
    return [(problem.path, problem.message) for problem in problems(parse_text(text), **options)]


def only(text, **options):
    (reason,) = problems_of(text, **options)
    return reason


@dataclass(frozen=True)
class Formats:
    """An installed backend."""

    name: str
    platforms: tuple[str, ...] = ()
    files: Mapping[str, str] = field(default_factory=dict)
    aliases: tuple[str, ...] = ()
