"""Clients that pull their shared memory from under the server."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from threading import Event, Thread
from typing import Any
from uuid import uuid4

import numpy as np
import pytest
from tritonclient.utils import InferenceServerException
from tritonclient.utils import shared_memory as shm

from .running import Running, until
from .sharing import LARGE, descriptors, file_of, key_of, placed, wanted


def test_a_segment_that_its_client_truncates_and_stretches_never_stops_the_server(
    sharing: Running, make_region: Callable[[int], Any]
) -> None:
    size = LARGE * 4
    region = make_region(2 * size)
    stop = Event()

    def torment() -> None:
        while not stop.is_set():
            os.truncate(file_of(region), 4096)
            os.truncate(file_of(region), 2 * size)

    def ask(_: int) -> list[str]:
        told = []
        with sharing.client() as client:
            for _ in range(40):
                given, output = placed("x", (LARGE,), "FP32", "r", size), wanted("output", "r", size, size)
                try:
                    client.infer("echo", [given], outputs=[output])
                except InferenceServerException as error:
                    told.append(str(error))
        return told

    with sharing.client() as client:
        client.register_system_shared_memory("r", key_of(region), 2 * size)
    thread = Thread(target=torment)
    thread.start()
    try:
        with ThreadPoolExecutor(4) as pool:
            told = [each for errors in pool.map(ask, range(4)) for each in errors]
    finally:
        stop.set()
        thread.join()

    assert all("shared memory region 'r' is not all there any more" in each for each in told)


def test_a_segment_that_is_cut_off_is_an_error_until_it_is_registered_again(
    sharing: Running, make_region: Callable[[int], Any]
) -> None:
    region = make_region(4096)
    given = placed("x", (512,), "FP32", "r", 2048, 2048)
    with sharing.client() as client:
        client.register_system_shared_memory("r", key_of(region), 4096)
        client.infer("echo", [given])

        os.truncate(file_of(region), 100)
        with pytest.raises(InferenceServerException, match="has 100 bytes now") as caught:
            client.infer("echo", [given])
        os.truncate(file_of(region), 4096)

        assert caught.value.status() == "400"
        assert client.infer("echo", [given]).as_numpy("output").shape == (512,)


def test_requests_go_on_while_regions_come_and_go(sharing: Running, make_region: Callable[[int], Any]) -> None:
    region = make_region(64)
    shm.set_shared_memory_region(region, [np.arange(8, dtype=np.float32)])
    stop = Event()

    def churn() -> None:
        with sharing.client() as client:
            while not stop.is_set():
                client.register_system_shared_memory("r", key_of(region), 64)
                client.unregister_system_shared_memory("r")

    thread = Thread(target=churn)
    thread.start()
    outcomes = set()
    try:
        with sharing.client() as client:
            for _ in range(200):
                try:
                    result = client.infer("echo", [placed("x", (8,), "FP32", "r", 32)])
                    outcomes.add(str(result.as_numpy("output").tolist()))
                except InferenceServerException as error:
                    outcomes.add(error.message())
    finally:
        stop.set()
        thread.join()

    unknown = "Unable to find shared memory region: 'r'; register it before it is used"
    assert outcomes <= {str([float(value) for value in range(8)]), unknown}


DYING = """
import os, signal, sys
from tritonclient.utils import shared_memory as shm
import tritonclient.http as triton

url, key = sys.argv[1:]
region = shm.create_shared_memory_region("dying", key, 4096)
triton.InferenceServerClient(url).register_system_shared_memory("dying", key, 4096)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_the_region_of_a_client_that_died_can_be_used_and_unregistered(sharing: Running) -> None:
    key = f"/naiad_test_{uuid4().hex}"
    died = subprocess.run([sys.executable, "-c", DYING, sharing.url, key], check=False, timeout=60)
    assert died.returncode == -signal.SIGKILL
    with suppress(FileNotFoundError):  # the dead client's resource tracker may have unlinked it
        (Path("/dev/shm") / key.lstrip("/")).unlink()

    with sharing.client() as client:
        result = client.infer("echo", [placed("x", (8,), "FP32", "dying", 32)])
        client.unregister_system_shared_memory("dying")

    assert result.as_numpy("output").tolist() == [0.0] * 8


def test_registering_again_and_again_leaves_nothing_behind(sharing: Running, make_region: Callable[[int], Any]) -> None:
    region = make_region(64)
    before = descriptors(sharing)
    with sharing.client() as client:
        for _ in range(50):
            client.register_system_shared_memory("r", key_of(region), 64)
            with pytest.raises(InferenceServerException, match="already in manager"):
                client.register_system_shared_memory("r", key_of(region), 64)
            with pytest.raises(InferenceServerException, match="invalid args"):
                client.register_system_shared_memory("s", key_of(region), 1 << 40)
            client.unregister_system_shared_memory("r")

    assert until(lambda: descriptors(sharing) == before)
