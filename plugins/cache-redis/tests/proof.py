"""Proof of naiad-cache-redis alone beside the kernel, in an environment of its own."""

import logging
import threading

from naiad import PluginRegistry

logging.disable()  # there is no collector
cache = PluginRegistry.discover().caches()["redis"].open({"host": "127.0.0.1", "port": "1"})
answered, answers = threading.Event(), []
cache.lookup(b"key", lambda value: (answers.append(value), answered.set()))
assert answered.wait(20)
cache.close()
assert answers == [None], answers
