"""Hostile clients and models against a real `naiad serve` process: `python -m bench.torture`."""
