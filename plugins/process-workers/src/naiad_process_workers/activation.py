"""Activation of a conda environment: the environment variables that `conda activate` would set."""

import subprocess
from collections.abc import Mapping
from pathlib import Path
from shutil import which

from naiad.errors import InvalidArgumentError
from naiad_process_workers.programs import describe_failure, last_lines

_SCRIPTS = "etc/conda/activate.d"
_RUN_SCRIPTS = 'for script in "$CONDA_PREFIX"/' + _SCRIPTS + '/*.sh; do . "$script" >&2; done; exec env -0'
_SECONDS = 60.0


def activated(root: Path, variables: Mapping[str, str]) -> dict[str, str]:
    """These environment variables after the activation of the conda environment at `root`.

    The scripts of its packages are run, which may set more of them. Raises InvalidArgumentError for scripts that fail,
    with what they print last.
    """
    changed = {**variables, "CONDA_PREFIX": str(root), "CONDA_DEFAULT_ENV": str(root), "CONDA_SHLVL": "1"}
    if not any((root / _SCRIPTS).glob("*.sh")):
        return changed
    command = [which("bash") or "sh", "-c", _RUN_SCRIPTS]
    try:
        ran = subprocess.run(  # noqa: S603 - a shell
            command, env=changed, stdin=subprocess.DEVNULL, capture_output=True, timeout=_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise InvalidArgumentError(f"the environment '{root}' cannot be activated: {error}") from error
    if ran.returncode:
        raise InvalidArgumentError(
            f"the environment '{root}' cannot be activated: its scripts in {_SCRIPTS} "
            + describe_failure(ran.returncode, last_lines(ran.stderr))
        )
    pairs = ran.stdout.decode("utf-8", "surrogateescape").split("\0")
    return dict(pair.split("=", 1) for pair in pairs if "=" in pair)
