"""The service of deploy/systemd: systemd takes it, its options are there, and its stop has the time that it needs."""

import configparser
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from naiad import PluginRegistry

UNIT = Path(__file__).resolve().parents[2] / "deploy" / "systemd" / "naiad.service"
NAIAD = Path(sys.executable).with_name("naiad")


def service() -> configparser.SectionProxy:
    parser = configparser.ConfigParser(interpolation=None, strict=False)
    parser.optionxform = str  # type: ignore[method-assign, assignment]
    parser.read(UNIT)
    return parser["Service"]


def test_the_command_has_options_that_there_are_and_the_stop_is_longer_than_theirs() -> None:
    command, *words = shlex.split(service()["ExecStart"])
    options = dict(re.fullmatch(r"--([a-z-]+)=(.*)", word).groups() for word in words if word.startswith("--"))  # type: ignore[union-attr]

    assert (Path(command).name, words[0]) == ("naiad", "serve")
    assert set(options) <= {option.name for option in PluginRegistry.discover().options()}
    assert int(service()["TimeoutStopSec"]) > int(options["lame-duck-secs"]) + int(options["exit-timeout-secs"])


def test_the_start_is_over_when_the_server_says_so_however_long_models_load() -> None:
    assert (service()["Type"], service()["TimeoutStartSec"]) == ("notify", "infinity")


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed")
def test_systemd_takes_the_unit(tmp_path: Path) -> None:
    unit = tmp_path / UNIT.name
    unit.write_text(UNIT.read_text().replace("/opt/naiad/bin/naiad", str(NAIAD)))

    done = subprocess.run(["systemd-analyze", "verify", unit], capture_output=True, text=True, check=False)

    assert [line for line in done.stderr.splitlines() if UNIT.name in line] == []
