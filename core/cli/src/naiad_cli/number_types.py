"""Number types of command-line options: the text of a number, checked against bounds. Each raises ArgumentTypeError."""

import argparse
import math
from collections.abc import Callable


def seconds(least: float = 0.0, most: float = math.inf) -> Callable[[str], float]:
    """The type of a duration: a finite number above 0, at least `least` and at most `most`."""
    bounds = f" from {least:g}" if least else " above 0"
    bounds += f", at most {most:.0f}" if most < math.inf else ""

    def convert(text: str) -> float:
        value = number(text)
        if not (value > 0 and least <= value <= most and math.isfinite(value)):
            raise argparse.ArgumentTypeError(f"'{text}' is not a number of seconds{bounds}")
        return value

    return convert


def number_from_one(text: str) -> int:
    """A whole number from 1 up."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"'{text}' is not a whole number from 1")
    return int(text)


def number(text: str) -> float:
    """A number, NaN for another text."""
    try:
        return float(text)
    except ValueError:
        return math.nan
