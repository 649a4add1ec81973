"""The lifeline of processes: the system kills them when the server has ended, whatever they do."""

import os
import select
import signal
import subprocess
import sys

FROZEN = """
import ctypes, subprocess, sys
from naiad_process_workers.bootstrap import end_with

end_with(int(sys.argv[1]))
child = subprocess.Popen(["sleep", "1000"], stdout=subprocess.DEVNULL)
print("ready", child.pid, flush=True)
ctypes.PyDLL(None).pause()
"""


FORKED = """
import os
from naiad_process_workers.lifeline import Lifeline

writer = Lifeline().writer
if os.fork() == 0:
    assert os.dup2(os.open("/dev/null", os.O_RDONLY), writer) == writer
    if os.fork() == 0:
        os.fstat(writer)
        os._exit(0)
    os._exit(os.waitstatus_to_exitcode(os.wait()[1]))
raise SystemExit(os.waitstatus_to_exitcode(os.wait()[1]))
"""


def test_a_child_of_a_child_of_the_server_keeps_its_files() -> None:
    subprocess.run([sys.executable, "-c", FORKED], check=True)


def test_each_process_ends_with_the_server_and_its_children_too_though_it_keeps_its_interpreter() -> None:
    reader, writer = os.pipe()
    command = [sys.executable, "-c", FROZEN, str(reader)]
    processes = [
        subprocess.Popen(command, stdout=subprocess.PIPE, pass_fds=[reader], start_new_session=True) for _ in range(3)
    ]
    children: list[int] = []
    try:
        for process in processes:
            assert process.stdout is not None
            ready, child = process.stdout.readline().split()
            assert ready == b"ready"
            children.append(os.pidfd_open(int(child)))

        os.close(writer)

        assert [process.wait(10) for process in processes] == [-signal.SIGKILL] * 3
        for child in children:
            assert select.select([child], [], [], 10)[0], "the child lives on"
    finally:
        for descriptor in (reader, *children):
            os.close(descriptor)
        for process in processes:
            process.kill()
            process.communicate()
