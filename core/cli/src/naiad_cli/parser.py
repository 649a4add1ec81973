"""Argument parser of all commands: no abbreviations, and status 1 for a mistake, as Triton has it."""

import argparse
import sys
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

Subparsers = argparse._SubParsersAction


class Parser(argparse.ArgumentParser):
    """An argument parser that takes no abbreviations and answers a mistake with status 1, as Triton does.

    `rewrite`, where it is set, sees the words before they are parsed, and `refuse` those that were not understood: it
    may raise a NaiadError that says more than that.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **({"allow_abbrev": False} | options))
        self.rewrite: Callable[[Sequence[str]], Sequence[str]] | None = None
        self.refuse: Callable[[Sequence[str]], None] | None = None

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """As argparse's own, between `rewrite` and `refuse`."""
        words = list(sys.argv[1:] if args is None else args)
        parsed, unknown = super().parse_known_args(self.rewrite(words) if self.rewrite else words, namespace)
        if unknown and self.refuse:
            self.refuse(unknown)
        return parsed, unknown

    def error(self, message: str) -> NoReturn:
        """Print the usage and the message to stderr and exit."""
        self.print_usage(sys.stderr)
        self.exit(1, f"{self.prog}: {message}\n")
