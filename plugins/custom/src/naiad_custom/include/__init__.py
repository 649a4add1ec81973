"""Where `naiad_custom.h` lies, which models as shared libraries are compiled with.

`python -m naiad_custom.include` prints it, for the command line of a compiler.
"""

from pathlib import Path


def include_dir() -> Path:
    """The folder of `naiad_custom.h`, for the compiler's option `-I`."""
    return Path(__file__).parent
