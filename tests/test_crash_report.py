"""A crash of native code names the file of the model on stderr."""

import http.client
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from .written import write_model

if TYPE_CHECKING:
    from conftest import ServerProcess

CRASH = """
import ctypes

from naiad_custom import FP32, Array, model

@model
def crash(a: Array[FP32, 1]) -> Array[FP32, 1]:
    ctypes.string_at(0)
    return a
"""


def test_the_stack_of_a_crash_names_the_model_file(serve: "Callable[..., ServerProcess]", tmp_path: Path) -> None:
    write_model(tmp_path, "crash", CRASH)
    server = serve(tmp_path)
    url = f"{server.url}/v2/models/crash/generate"

    with pytest.raises((urllib.error.URLError, http.client.HTTPException, OSError)):
        urllib.request.urlopen(url, data=b'{"a": 1}', timeout=30)

    server.wait_for("Fatal Python error: Segmentation fault")
    server.wait_for(r"crash/1/model\.py.* in crash")
