"""Print the folder of `naiad_custom.h`, for the `-I` option of a compiler."""

import sys

from naiad_custom.include import include_dir

sys.stdout.write(f"{include_dir()}\n")
