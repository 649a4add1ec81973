"""Print the folder of `naiad_custom.h`."""

import sys

from naiad_custom.include import include_dir

sys.stdout.write(f"{include_dir()}\n")
