"""The command `naiad-config`: `naiad-config check DIR` reports every problem of the configurations in a repository."""

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from naiad_config.errors import ConfigError, NaiadError
from naiad_config.model_folder import read_model
from naiad_config.repository import scan


def problems_of(repositories: Sequence[Path], variant: str = "") -> Mapping[str, Sequence[str]]:
    """The problems of each model by its name; none for a sound one. Raises NotFoundError without such a repository."""
    every = {}
    for name, folders in sorted(scan(repositories).items()):
        every[name] = [problem for folder in folders for problem in _problems(folder, name, variant)]
        if len(folders) > 1:
            roots = ", ".join(str(folder.parent) for folder in folders)
            every[name].append(f"the model is in more than one repository: {roots}")
    return every


def _problems(folder: Path, name: str, variant: str) -> Sequence[str]:
    try:
        read_model(folder, name=name, variant=variant)
    except ConfigError as error:
        return [str(problem) for problem in error.problems]
    except NaiadError as error:
        return [str(error)]
    return []


def main(words: Sequence[str] | None = None) -> int:
    """Run the command; the exit status is 1 when there is a problem, 2 for wrong words or a missing repository."""
    parser = argparse.ArgumentParser("naiad-config", description="Model configurations of Triton Inference Server.")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    described = "Every problem of the config.pbtxt files in the repositories DIR, as far as no framework is needed."
    check = commands.add_parser("check", help="report every problem", description=described)
    check.add_argument("repositories", nargs="+", type=Path, metavar="DIR", help="a model repository")
    check.add_argument("--model-config-name", default="", metavar="NAME", help="use configs/NAME.pbtxt where it exists")
    arguments = parser.parse_args(words)
    try:
        models = problems_of(arguments.repositories, arguments.model_config_name)
    except NaiadError as error:
        print(f"naiad-config: {error}", file=sys.stderr)
        return 2
    for name, problems in models.items():
        print("\n  ".join([f"{name}: {'problems' if problems else 'ok'}", *problems]))
    return 1 if any(models.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
