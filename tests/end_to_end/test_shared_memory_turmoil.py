"""Clients that pull their shared memory from under the server."""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Event, Thread
from typing import Any

import numpy as np
from tritonclient.utils import InferenceServerException
from tritonclient.utils import shared_memory as shm

from .running import Running
from .sharing import LARGE, file_of, key_of, output_in, placed


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
        recorded = []
        with sharing.client() as client:
            for _ in range(15):
                values, output = placed("x", (LARGE,), "FP32", "r", size), output_in("output", "r", size, size)
                try:
                    client.infer("echo", [values], outputs=[output])
                except InferenceServerException as error:
                    recorded.append(str(error))
        return recorded

    with sharing.client() as client:
        client.register_system_shared_memory("r", key_of(region), 2 * size)
    thread = Thread(target=torment)
    thread.start()
    try:
        with ThreadPoolExecutor(4) as pool:
            recorded = [each for errors in pool.map(ask, range(4)) for each in errors]
    finally:
        stop.set()
        thread.join()

    assert all("shared memory region 'r' " in each for each in recorded)


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
            for _ in range(80):
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
