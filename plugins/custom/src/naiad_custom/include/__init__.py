"""The folder of the C header `naiad_custom.h`.

`python -m naiad_custom.include` prints it, for the command line of a compiler.
"""

from pathlib import Path


def include_dir() -> Path:
    """The folder of `naiad_custom.h`, for the compiler's option `-I`."""
    return Path(__file__).parent
