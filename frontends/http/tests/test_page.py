"""The page of this frontend says what the code does."""

import re
from pathlib import Path
from types import SimpleNamespace

from naiad_http.application import operations
from naiad_http.incoming import LONGEST_HEAD
from naiad_http.openapi import INFERENCE_PATHS
from naiad_http.options import OPTIONS
from naiad_http.statuses import STATUSES
from naiad_kit.frontends.connection_limits import IDLE_SECONDS
from naiad_kit.frontends.restrictions import APIS

SERVER = SimpleNamespace(service=lambda kind: None)
PAGE = (Path(__file__).parents[3] / "docs" / "http.md").read_text()


def test_the_page_has_every_option_with_its_default():
    documented = dict(re.findall(r"^\| `--([a-z-]+)` \| (?:`([^`]*)`)? *\|", PAGE, re.MULTILINE))

    assert documented == {each.name: _as_text(each.default) for each in OPTIONS}


def _as_text(default):
    return "" if default == () else str(default).lower()


def test_the_page_has_every_route():
    documented = set()
    for method, cell in re.findall(r"^\| (GET|POST) \| ([^|]+) \|", PAGE, re.MULTILINE):
        for path in re.findall(r"`([^`]+)`", cell):
            documented.add((method, re.sub(r"\[.*?\]", "", path)))
            documented.add((method, path.replace("[", "").replace("]", "")))
    routes = {(each.method, each.path.replace(":text}", "}")) for each in operations(SERVER, 0, lambda: False)}

    assert documented == {route for route in routes if "{repository}" not in route[1]} | {
        ("POST", path) for path in INFERENCE_PATHS
    }


def test_the_page_has_every_error_at_its_status():
    documented = {
        name: int(status)
        for status, cell in re.findall(r"^\| (\d{3}) \| (.+) \|$", PAGE, re.MULTILINE)
        for name in re.findall(r"`(\w+Error)`", cell)
    }

    assert documented == {kind.__name__: status for kind, status in STATUSES.items()}


def test_the_page_has_the_limits_and_the_restricted_apis():
    assert f"{IDLE_SECONDS:g} seconds without a byte" in PAGE
    assert f"| request line and headers | {LONGEST_HEAD // 1024} KiB |" in PAGE
    assert "65,536 chunks" in PAGE
    assert all(f"`{api}`" in PAGE for api in APIS)
