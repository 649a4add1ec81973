"""How many inferences a second a framework makes by itself: no server, one thread, one batch size."""

import argparse
import json
import time
from pathlib import Path

from frameworks import FRAMEWORKS


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("framework", choices=FRAMEWORKS)
    parser.add_argument("model", type=Path)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--width", type=int, default=512, help="of the input, which is FP32[batch, width]")
    parser.add_argument("--seconds", type=float, default=5.0)
    arguments = parser.parse_args()
    call = FRAMEWORKS[arguments.framework].opened(arguments.model)
    import numpy as np

    array = np.random.default_rng(1).standard_normal((arguments.batch, arguments.width)).astype(np.float32)
    for _ in range(5):
        call(array)
    runs, started = 0, time.perf_counter()
    while (elapsed := time.perf_counter() - started) < arguments.seconds:
        call(array)
        runs += 1
    print(json.dumps({"inferences_per_second": runs * arguments.batch / elapsed, "runs": runs}))


if __name__ == "__main__":
    main()
