"""Argument parser of all commands: no abbreviations, the nearest name for a typing error, status 2 for a mistake."""

import argparse
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from difflib import get_close_matches
from typing import Any, NoReturn

from naiad.errors import NaiadError, UsageError

Subparsers = argparse._SubParsersAction

_CHOICE = re.compile(r"invalid choice: '?([^']+?)'? \(choose from (.*)\)$")
"""What argparse says of a word that is none of several; Python 3.12 took the quotes away."""


def exit_status(error: NaiadError) -> int:
    """2 for a mistake in the options, 1 for anything else."""
    return 2 if isinstance(error, UsageError) else 1


class Parser(argparse.ArgumentParser):
    """An argument parser that takes no abbreviations and answers a mistake with status 2.

    `rewrite`, where there is one, gets the words before they are parsed, and `refuse` those that were not understood:
    it may raise a UsageError that says more than that.
    """

    def __init__(
        self,
        *args: Any,
        rewrite: Callable[[Sequence[str]], Sequence[str]] | None = None,
        refuse: Callable[[Sequence[str]], None] | None = None,
        **options: Any,
    ) -> None:
        super().__init__(*args, **({"allow_abbrev": False} | options))
        self._rewrite = rewrite
        self._refuse = refuse

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """As argparse's own, between `rewrite` and `refuse`; the innermost parser refuses, under its own usage."""
        words = list(sys.argv[1:] if args is None else args)
        parsed, unknown = super().parse_known_args(self._rewrite(words) if self._rewrite else words, namespace)
        if unknown and self._refuse:
            self._refuse(unknown)
        if unknown:
            self.error(f"unrecognized arguments: {' '.join(unknown)}{self._advice(unknown[0])}")
        return parsed, unknown

    def error(self, message: str) -> NoReturn:
        """Print the usage and the message to stderr and exit with status 2."""
        choice = _CHOICE.search(message)
        near = choice and did_you_mean(choice[1], choice[2].replace("'", "").split(", "))
        self.print_usage(sys.stderr)
        self.exit(2, f"{self.prog}: {message}{near or ''}\n")

    def option_actions(self) -> Iterator[argparse.Action]:
        """The options of this parser, as argparse describes them."""
        return (action for action in self._actions if action.option_strings)

    def commands(self) -> dict[str, "Parser"]:
        """The parsers of the commands within this command, by name."""
        choices = (action.choices for action in self._actions if isinstance(action, argparse._SubParsersAction))
        return {name: parser for each in choices for name, parser in each.items()}

    def _advice(self, word: str) -> str:
        names = [name for action in self.option_actions() for name in action.option_strings]
        return did_you_mean(word.partition("=")[0], names) if word.startswith("-") else ""


def did_you_mean(word: str, names: Sequence[str]) -> str:
    """`; did you mean 'poll'?` with the nearest of the names, "" where none is near."""
    near = get_close_matches(word, names, n=1)
    return f"; did you mean '{near[0]}'?" if near else ""
