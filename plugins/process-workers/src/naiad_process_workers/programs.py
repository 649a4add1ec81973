"""Programs that prepare an environment, such as installers: run one to its end, and keep what it prints last."""

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

_LAST_LINES = 12


def run(command: Sequence[str], variables: Mapping[str, str], lock: int, folder: Path | None = None) -> tuple[int, str]:
    """Run the command with these environment variables, in that folder: its exit code, and the lines it prints last.

    The program keeps the descriptor `lock` open. Raises OSError when the program cannot be started.
    """
    ran = subprocess.run(  # noqa: S603 - named by the server or by the owner of the model
        command,
        cwd=folder,
        env=variables,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        pass_fds=(lock,),
        check=False,
    )
    return ran.returncode, last_lines(ran.stdout)


def last_lines(output: bytes) -> str:
    """The last lines of what a program printed."""
    return "\n".join(output.decode("utf-8", "replace").strip().splitlines()[-_LAST_LINES:])


def describe_failure(code: int, last: str) -> str:
    """How a program failed: its exit code, and the lines that it printed last."""
    return f"ended with exit code {code} and said " + (f"last:\n{last}" if last else "nothing")
