"""`naiad simulate` runs this scheduler, chosen by the configuration as the server chooses it."""

import json
import subprocess
import sys
from pathlib import Path


def test_the_dynamic_batcher_is_simulated_from_a_configuration_file(tmp_path):
    config = tmp_path / "config.pbtxt"
    config.write_text(
        "max_batch_size: 8 dynamic_batching { preferred_batch_size: [2, 6] max_queue_delay_microseconds: 5000 }"
    )
    naiad = Path(sys.executable).with_name("naiad")
    words = ["simulate", config, "--arrivals", "burst:3@100", "--duration", "1", "--service-time-ms", "1", "--json"]

    done = subprocess.run([naiad, *words], capture_output=True, text=True, check=True)

    figures = json.loads(done.stdout)
    assert figures["scheduler"] == "dynamic"
    assert figures["reasons"] == {"preferred size": 10, "delay expired": 10}
    assert figures["batch_sizes"] == {"1": 10, "2": 10}
