"""Translations of the operators of Caffe2; each module enters its operators into the table when it is imported."""

import importlib

_MODULES = (
    "activations",
    "arithmetic",
    "convolution",
    "distances",
    "fills",
    "images",
    "joining",
    "lengths",
    "matrices",
    "normalization",
    "pooling",
    "reductions",
    "selection",
    "shapes",
)


def enter_all() -> None:
    """Import every module with operators."""
    for name in _MODULES:
        importlib.import_module(f"{__name__}.{name}")
