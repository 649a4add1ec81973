"""The lifeline of processes: the system kills them when the server has ended, whatever they do."""

import os
import signal
import subprocess
import sys

FROZEN = """
import ctypes, sys
from naiad_process_workers.bootstrap import end_with

end_with(int(sys.argv[1]))
print("ready", flush=True)
ctypes.PyDLL(None).pause()
"""


def test_each_process_ends_with_the_server_though_it_keeps_its_interpreter() -> None:
    reader, writer = os.pipe()
    command = [sys.executable, "-c", FROZEN, str(reader)]
    processes = [subprocess.Popen(command, stdout=subprocess.PIPE, pass_fds=[reader]) for _ in range(3)]
    try:
        for process in processes:
            assert process.stdout is not None
            assert process.stdout.readline() == b"ready\n"

        os.close(writer)

        assert [process.wait(10) for process in processes] == [-signal.SIGKILL] * 3
    finally:
        os.close(reader)
        for process in processes:
            process.kill()
            process.communicate()
