"""The benchmark's own parts: it reads its load generators right, judges goals, and keeps one section a case."""

import json
import re
import subprocess
import sys
import time
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import onnxruntime
import pytest

BENCH = Path(__file__).resolve().parent.parent / "bench"

PERF_ANALYZER = """
Request concurrency: 64
  Client:
    Request count: 91150
    Throughput: 8349.05 infer/sec
    p99 latency: 12985 usec
Inferences/Second vs. Client Average Batch Latency
Concurrency: 64, throughput: 8349.05 infer/sec, latency 7656 usec
"""

WRK = """Running 8s test @ http://127.0.0.1:8000/v2/models/add_sub/infer
Requests/sec:  12345.00
{"requests": 96000, "failed": 0, "seconds": 8.000000, "p99_microseconds": 4100}
"""


@pytest.fixture(autouse=True)
def bench_on_path(monkeypatch: pytest.MonkeyPatch) -> None:
    """The scripts of the benchmark import each other from their folder."""
    monkeypatch.syspath_prepend(str(BENCH))


def test_perf_analyzer_is_read_for_throughput_and_p99() -> None:
    from load import Load, read_perf_analyzer

    assert read_perf_analyzer(PERF_ANALYZER) == Load(8349.05, 12.985)


def test_a_perf_analyzer_that_found_no_stable_value_measured_nothing() -> None:
    from load import LoadError, read_perf_analyzer

    with pytest.raises(LoadError, match="Failed to obtain stable measurement"):
        read_perf_analyzer("Request concurrency: 1\nFailed to obtain stable measurement.\n")


def test_wrk_is_read_from_the_summary_of_its_script() -> None:
    from load import Load, read_wrk

    assert read_wrk(WRK) == Load(12000.0, 4.1)


def test_requests_that_failed_are_no_measurement() -> None:
    from load import LoadError, read_wrk

    with pytest.raises(LoadError, match="3 of 96000 requests failed"):
        read_wrk(WRK.replace('"failed": 0', '"failed": 3'))


def test_a_goal_for_a_ratio_is_judged_by_the_medians() -> None:
    from report import Goal, Row

    row = Row("inferences/s", (3000.0, 2000.0, 2900.0), (1000.0, 1500.0, 1400.0), Goal(least=2, of_ratio=True))

    assert row.cells() == ["inferences/s", "2,900 (2,000–3,000)", "1,400 (1,000–1,500)", "2.07", "≥ 2 ×", "yes"]


def test_a_goal_for_a_value_needs_no_reference() -> None:
    from report import Goal, Row

    assert Row("resident memory, MB", (91.0,), (), Goal(most=90)).cells()[-3:] == ["–", "≤ 90", "no"]


def test_a_ratio_without_a_reference_is_not_judged() -> None:
    from report import Goal, Row

    assert Row("inferences/s", (1.0,), (), Goal(least=2, of_ratio=True)).cells()[-1] == "–"


def test_results_keep_one_section_a_case(tmp_path: Path) -> None:
    from report import refresh

    results = tmp_path / "RESULTS.md"
    results.write_text("# Results\n")

    for name, section in (("a", "first"), ("b", "other"), ("a", "second")):
        refresh(results, name, section)

    assert results.read_text() == (
        "# Results\n\n<!-- case a -->\nsecond\n<!-- end of a -->\n\n<!-- case b -->\nother\n<!-- end of b -->\n"
    )


def test_the_benchmark_runs_where_neither_peer_nor_load_generator_is_there(tmp_path: Path) -> None:
    environment = {"PATH": str(tmp_path), "NAIAD_PEER": str(tmp_path / "peer")}
    command = [sys.executable, BENCH / "run.py", "--quick", "--cases=scheduler,binary,footprint"]

    ended = subprocess.run(command, env=environment, capture_output=True, text=True)

    assert "Naiad alone is measured: there is no peer script at" in ended.stderr
    assert "`dynamic_batching {}`: decisions/s" in ended.stdout
    assert "resident memory when ready, MB" in ended.stdout
    assert "perf_analyzer was not found" in ended.stdout
    assert ended.stderr.splitlines()[-1] == "not measured: binary"
    assert ended.returncode == 1


def test_another_checkout_gets_the_options_that_it_knows(tmp_path: Path) -> None:
    from servers import OWN_COMMAND, Ports, serve_command

    def command(*options: str, naiad: Path = OWN_COMMAND) -> list[str]:
        return serve_command(naiad, Path("models"), Ports(1, 2, 3), options)

    other = tmp_path / "naiad"
    other.symlink_to(OWN_COMMAND)

    assert command("--model-repository=more", "--of-tomorrow=1", naiad=other)[-1] == "--model-repository=more"
    with pytest.raises(ValueError, match="naiad serve does not know --of-tomorrow=1"):
        command("--of-tomorrow=1")
    with pytest.raises(ValueError, match="--name=value"):
        command("--model-repository", "more")


BESIDE_THE_LOOP = "import threading; print(flush=True); event = threading.Event(); event.wait()"
IN_THE_LOOP = "import socket, sys; sockets = socket.socketpair(); print(flush=True); sys.stdin.read()"


@pytest.mark.skipif(sys.platform != "linux", reason="looks at /proc")
def test_the_case_of_traces_gives_options_of_one_word_each(monkeypatch: pytest.MonkeyPatch) -> None:
    from types import SimpleNamespace

    from cases import observing
    from load import Load
    from servers import Ports, serve_command

    commands: list[list[str]] = []

    def serve(models: Path, *options: str) -> nullcontext[SimpleNamespace]:
        commands.append(serve_command(Path(sys.executable).with_name("naiad"), models, Ports(1, 2, 3), options))
        return nullcontext(SimpleNamespace(port=1))

    monkeypatch.setattr(observing, "Naiad", lambda: SimpleNamespace(serve=serve))
    observing.measure(SimpleNamespace(rounds=1, generator=lambda *_: Load(1.0, 1.0)))

    assert any("--trace-config=level=TIMESTAMPS" in command for command in commands)


@pytest.mark.parametrize("main_thread", [BESIDE_THE_LOOP, IN_THE_LOOP])
def test_descriptors_count_alike_whichever_thread_runs_the_loop(main_thread: str) -> None:
    from servers import Ports, Running

    command = [sys.executable, "-c", main_thread]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        running = Running("a program", Ports(0, 0, 0), process, 0.0)
        deadline = time.monotonic() + 30
        while (counted := running.descriptors()) != 3 and time.monotonic() < deadline:
            time.sleep(0.01)
        process.kill()

    assert counted == 3


def test_the_accumulators_of_the_sequence_case_add_up(tmp_path: Path) -> None:
    from cases.sequences import built

    folders = sorted(built(tmp_path).iterdir())

    assert [folder.name for folder in folders] == ["accumulator_direct", "accumulator_oldest"]
    for folder in folders:
        session = onnxruntime.InferenceSession(folder / "1" / "model.onnx")
        array = {"INPUT": np.float32([[2]]), "INPUT_STATE": np.float32([[40]])}
        assert [each.tolist() for each in session.run(["OUTPUT", "OUTPUT_STATE"], array)] == [[[42]], [[42]]]


@pytest.mark.parametrize("name", ["onnx", "torch", "tensorflow", "openvino"])  # compiling for AOTInductor takes long
def test_every_framework_runs_the_same_model(tmp_path: Path, name: str) -> None:
    from frameworks import FRAMEWORKS
    from frameworks.framework import layers

    framework = FRAMEWORKS[name]
    path = framework.build(tmp_path / "m", (4, 8, 3))
    array = np.linspace(-1, 1, 8, dtype=np.float32).reshape(2, 4)

    outputs = framework.opened(path)(array)

    (first, one), (second, other) = layers((4, 8, 3))
    expected = np.maximum(array @ first + one, 0) @ second + other
    np.testing.assert_allclose(np.asarray(outputs if name == "torch" else outputs[0]), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", ["onnx", "openvino"])
def test_the_overhead_is_reported_above_the_framework_s_own_call(name: str) -> None:
    command = [sys.executable, BENCH / "overhead.py", name, "--requests", "20"]

    ended = subprocess.run(command, capture_output=True, text=True, check=True)

    report = json.loads(ended.stdout)
    assert sorted(report) == ["instance", "own", "server"]
    assert report["server"] > report["instance"]


def test_a_crossing_is_measured_with_the_plugins_that_it_needs() -> None:
    command = [sys.executable, BENCH / "crossing.py", "--rounds=1", "--requests=100"]

    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout

    assert re.findall(r"^ *(\d+) outstanding: +[\d.]+ µs a request", printed, re.MULTILINE) == ["1", "16", "64"]


def test_a_download_from_a_store_takes_the_memory_of_two_parts() -> None:
    command = [sys.executable, BENCH / "store_download.py", "--gigabytes=0.25"]

    printed = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120).stdout

    small, large = (int(megabytes) for megabytes in re.findall(r"at most (\d+) MB resident", printed))
    assert large - small < 80


def test_the_summary_and_the_readme_have_the_figures_of_the_tables() -> None:
    from summary import BEGIN, END, LINES, README, RESULTS, summary, table_of_readme

    results = RESULTS.read_text()

    assert len(LINES) == 13
    assert f"{BEGIN}\n{summary(results)}\n{END}" in results, "run python bench/summary.py"
    assert f"{BEGIN}\n{table_of_readme(results)}\n{END}" in README.read_text(), "run python bench/summary.py"


def test_a_measured_case_changes_the_summary(tmp_path: Path) -> None:
    from report import Row, refresh, table
    from summary import README, RESULTS, refresh_summaries

    results, readme = tmp_path / "RESULTS.md", tmp_path / "README.md"
    results.write_text(RESULTS.read_text())
    readme.write_text(README.read_text())
    rows = [Row("requests/s", (3000.0,), (1000.0,)), Row("p99, ms", (1.0,), (2.0,))]

    refresh(results, "json", f"## HTTP\n\n{table(rows, 'Triton 9.9')}")
    refresh_summaries(results, readme)

    assert "| Python model, HTTP, JSON bodies | more | 3,000 requests/s | 1,000 requests/s (Triton 9.9) | 3 × |" in (
        results.read_text()
    )
    assert "| Python model, HTTP, JSON bodies (more is better) | 3 × |" in readme.read_text()


def test_a_row_that_is_gone_is_named(tmp_path: Path) -> None:
    from summary import RESULTS, summary

    with pytest.raises(KeyError, match=r"the case 'json' of RESULTS\.md has no row 'requests/s'"):
        summary(RESULTS.read_text().replace("| requests/s  ", "| answers/s  "))
