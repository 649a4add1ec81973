"""How many inferences a second `session.run` makes by itself: no server, one thread, one batch size."""

import argparse
import json
import time

import numpy as np
import onnxruntime


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model")
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--seconds", type=float, default=5.0)
    arguments = parser.parse_args()
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(arguments.model, options, providers=["CPUExecutionProvider"])
    (given,) = session.get_inputs()
    width = given.shape[1]
    feed = {given.name: np.random.default_rng(1).standard_normal((arguments.batch, width)).astype(np.float32)}
    for _ in range(5):
        session.run(None, feed)
    runs, started = 0, time.perf_counter()
    while (elapsed := time.perf_counter() - started) < arguments.seconds:
        session.run(None, feed)
        runs += 1
    print(json.dumps({"inferences_per_second": runs * arguments.batch / elapsed, "runs": runs}))


if __name__ == "__main__":
    main()
