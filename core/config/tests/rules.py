"""What the tests of the rules share: the parts of a valid configuration, and what is found wrong in a text."""

from naiad_config.text import parse_text
from naiad_config.validation import problems

VALID = 'name: "m" backend: "b" max_batch_size: 8 '
INPUT = 'input { name: "x" data_type: TYPE_FP32 dims: 4 } '
OUTPUT = 'output { name: "y" data_type: TYPE_FP32 dims: 4 } '


def found(text, **options):
    return [(problem.path, problem.message) for problem in problems(parse_text(text), **options)]


def only(text, **options):
    (reason,) = found(text, **options)
    return reason
