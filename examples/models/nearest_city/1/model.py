"""The nearest of some cities: a class that reads its table once, in `load`, and answers whole batches from it."""

import csv
from typing import NamedTuple

import numpy as np
from naiad.backend import ModelContext
from naiad_custom import BYTES, FP32, Array, model

EARTH_RADIUS_KM = 6371.0


class Nearest(NamedTuple):
    city: Array[BYTES, 1]
    kilometres: Array[FP32, 1]


@model(max_batch_size=64)
class NearestCity:
    def load(self, context: ModelContext) -> None:
        with (context.version_directory / "cities.csv").open(encoding="utf-8") as table:
            rows = list(csv.DictReader(table))
        self.names = np.array([row["name"].encode() for row in rows], dtype=object)
        self.points = on_unit_sphere(np.array([[float(row["latitude"]), float(row["longitude"])] for row in rows]))

    def execute(self, position: Array[FP32, 2]) -> Nearest:
        """`position` is latitude and longitude in degrees."""
        cosines = on_unit_sphere(position) @ self.points.T
        nearest = cosines.argmax(axis=1, keepdims=True)
        angles = np.arccos(np.take_along_axis(cosines, nearest, axis=1).clip(-1, 1))
        return Nearest(self.names[nearest], (angles * EARTH_RADIUS_KM).astype(np.float32))


def on_unit_sphere(degrees: np.ndarray) -> np.ndarray:
    latitude, longitude = np.radians(degrees.astype(float)).T
    return np.stack(
        [np.cos(latitude) * np.cos(longitude), np.cos(latitude) * np.sin(longitude), np.sin(latitude)], axis=1
    )
