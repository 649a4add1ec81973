"""Draws what the classifier `shapes` knows: circles, squares and triangles in red, green and blue, on noise."""

import numpy as np

SIDE = 32
"""Width and height of a picture in pixels."""

SHAPES = ("circle", "square", "triangle")
COLOURS = ("red", "green", "blue")
LABELS = tuple(f"{colour} {shape}" for colour in COLOURS for shape in SHAPES)
"""What a picture can show; a label's place in this order is its class."""


def draw(label: str, chance: np.random.Generator) -> np.ndarray:
    """A picture of that label, UINT8 [32, 32, 3]: place, size, shade and noise by chance."""
    colour, shape = label.split()
    radius = chance.uniform(7, 11)
    x, y = chance.uniform(radius, SIDE - radius, size=2)
    picture = chance.uniform(0, 70, size=(SIDE, SIDE, 3))
    inside = _covered(shape, x, y, radius)
    shade = np.full(3, 40.0)
    shade[COLOURS.index(colour)] = chance.uniform(170, 240)
    picture[inside] = shade + chance.uniform(-15, 15, size=(int(inside.sum()), 3))
    return picture.astype(np.uint8)


def _covered(shape: str, x: float, y: float, radius: float) -> np.ndarray:
    """Which pixels the shape covers, BOOL [32, 32]."""
    rows, columns = np.mgrid[:SIDE, :SIDE].astype(float)
    right, down = columns - x, rows - y
    if shape == "circle":
        return right**2 + down**2 <= radius**2
    if shape == "square":
        half = radius * 0.85
        return (abs(right) <= half) & (abs(down) <= half)
    return (down <= radius * 0.9) & (abs(right) * 1.9 <= down + radius)
