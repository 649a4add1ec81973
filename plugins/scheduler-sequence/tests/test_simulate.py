"""`naiad simulate` plays sequences through this scheduler, chosen by the configuration as the server chooses it."""

import json
import subprocess
import sys
from pathlib import Path

NAIAD = Path(sys.executable).with_name("naiad")


def simulated(config, *words):
    done = subprocess.run([NAIAD, "simulate", config, *words], capture_output=True, text=True, check=True)
    return done.stdout


def test_requests_are_dealt_to_sequences(tmp_path):
    config = tmp_path / "config.pbtxt"
    config.write_text("max_batch_size: 4 sequence_batching { direct { } }")
    words = ["--arrivals", "burst:4@100", "--duration", "1", "--service-time-ms", "1"]

    figures = json.loads(simulated(config, *words, "--sequences", "4", "--sequence-length", "5", "--json"))

    assert figures["scheduler"] == "sequence"
    assert figures["reasons"] == {"full": 10}
    assert (figures["sent"], figures["dropped"]) == (40, {})


def test_recorded_sequences_are_shown_slot_by_slot(tmp_path):
    config, arrivals = tmp_path / "config.pbtxt", tmp_path / "arrivals.csv"
    config.write_text("max_batch_size: 2 sequence_batching { }")
    arrivals.write_text("time,sequence_id,sequence_start,sequence_end\n0,7,yes,\n0.01,7,,yes\n0.01,b,yes,\n")

    message = simulated(config, "--arrivals", str(arrivals), "--instances", "1", "--timeline")

    assert message.splitlines()[-3:] == ["ms       0   10", "0 row 0  7+  7-", "0 row 1      b+"]


def test_iterative_requests_need_no_sequences(tmp_path):
    config = tmp_path / "config.pbtxt"
    config.write_text("max_batch_size: 2 sequence_batching { iterative_sequence: true }")

    figures = json.loads(simulated(config, "--arrivals", "uniform:10", "--duration", "1", "--json"))

    assert (figures["sent"], figures["dropped"]) == (10, {})
