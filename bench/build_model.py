"""Writes the model under load in the form of a framework, with its configuration, into a model folder."""

import argparse
from pathlib import Path

from frameworks import FRAMEWORKS


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("framework", choices=FRAMEWORKS)
    parser.add_argument("folder", type=Path)
    arguments = parser.parse_args()
    FRAMEWORKS[arguments.framework].build(arguments.folder)


if __name__ == "__main__":
    main()
