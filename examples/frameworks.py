"""Example models of frameworks other than ONNX, each written where its framework is, and left out elsewhere."""

import hashlib
import importlib.util
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Example:
    """A model: the module that writing it needs, what to install for serving it, and what writes its version folder."""

    name: str
    needs: str
    install: str
    write: Callable[[Path], None]
    config: str = ""


def build(example: Example, repository: Path) -> str:
    """Write the model's folder, and return a line about it: "" when it was there as this file describes it.

    Frameworks write other bytes each time, so the first line of `config.pbtxt` says of which description it was made.
    """
    folder = repository / example.name
    described = hashlib.sha256(Path(__file__).read_bytes()).hexdigest()[:16]
    config = f"# made by examples/build.py, of description {described}\n{example.config}"
    written = folder / "config.pbtxt"
    if written.exists() and written.read_text() == config:
        return ""
    if importlib.util.find_spec(example.needs) is None:
        return f"left out {example.name}: it needs {example.needs}; pip install '{example.install}'"
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "1").mkdir(parents=True)
    example.write(folder / "1")
    written.write_text(config)
    return f"wrote {folder}"


def life(folder: Path) -> None:
    """One step of Conway's Game of Life, as an exported program of PyTorch.

    `board` UINT8 [n, height, width] of zeros and ones gives the next one as `OUTPUT__0`. Its edges are its neighbours.
    """
    import torch
    from torch.export import Dim
    from torch.nn import functional

    class Life(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("ring", torch.tensor([[[[1.0, 1, 1], [1, 0, 1], [1, 1, 1]]]]))

        def forward(self, board: torch.Tensor) -> torch.Tensor:
            around = functional.pad(board[:, None].float(), (1, 1, 1, 1), "circular")
            neighbours = functional.conv2d(around, self.ring)[:, 0]
            return ((neighbours == 3) | ((neighbours == 2) & (board > 0))).to(torch.uint8)

    sizes = {0: Dim("n", min=1, max=1024), 1: Dim("height", min=3, max=4096), 2: Dim("width", min=3, max=4096)}
    program = torch.export.export(Life(), (torch.zeros(2, 8, 9, dtype=torch.uint8),), dynamic_shapes={"board": sizes})
    torch.export.save(program, folder / "model.pt2")


def slug(folder: Path) -> None:
    """Titles as they stand in addresses of pages, as a SavedModel of TensorFlow, which computes on strings.

    `title` BYTES [n, 1] gives `slug` BYTES [n, 1] and its number of `words` INT32 [n, 1].
    """
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    import tensorflow as tf

    @tf.function(input_signature=[tf.TensorSpec([None, 1], tf.string, "title")])
    def slugs(title: tf.Tensor) -> dict[str, tf.Tensor]:
        plain = tf.strings.regex_replace(tf.strings.lower(title, encoding="utf-8"), r"[^\pL\pN]+", "-")
        result = tf.strings.regex_replace(plain, "^-|-$", "")
        words = tf.strings.length(tf.strings.regex_replace(result, "[^-]", "")) + 1
        return {"slug": result, "words": tf.where(tf.equal(result, ""), 0, words)}

    module = tf.Module()
    tf.saved_model.save(module, str(folder / "model.savedmodel"), signatures={"serving_default": slugs})


def daylight(folder: Path) -> None:
    """Hours between sunrise and sunset, as a model of OpenVINO.

    `day` FP32 [n, 1] of the year and `latitude` FP32 [n, 1] in degrees give `hours` FP32 [n, 1]. The declination of the
    sun is Cooper's, 23.45° sin(360° (284 + day) / 365), and the day 24/180° arccos(-tan latitude · tan declination).
    """
    import numpy as np
    import openvino
    from openvino import opset13 as ops

    def number(value: float) -> openvino.Node:
        return ops.constant(np.float32(value))

    day, latitude = (ops.parameter([-1, 1], np.float32, name=name) for name in ("day", "latitude"))
    declination = number(np.radians(23.45)) * ops.sin((day + number(284)) * number(2 * np.pi / 365))
    cosine = number(-1) * ops.tan(latitude * number(np.pi / 180)) * ops.tan(declination)
    hours = ops.acos(ops.clamp(cosine, -1, 1)) * number(24 / np.pi)
    hours.output(0).set_names({"hours"})
    openvino.save_model(openvino.Model([hours], [day, latitude], "daylight"), folder / "model.xml")


def outline(folder: Path) -> None:
    """How steeply grey pictures change at each pixel, by Sobel's two filters, as a net of Caffe2 in protobuf's text.

    `picture` FP32 [n, height, width, 1] gives `outline` FP32 [n, height, width].
    """
    (folder / "model.netdef").write_text(
        """name: "outline"
op { type: "Conv" input: "picture" input: "filters" output: "slopes"
     arg { name: "kernel" i: 3 } arg { name: "pad" i: 1 } arg { name: "order" s: "NHWC" } }
op { type: "Sqr" input: "slopes" output: "slopes" }
op { type: "ReduceBackSum" input: "slopes" output: "outline" }
op { type: "Sqrt" input: "outline" output: "outline" }
external_input: "picture" external_input: "filters" external_output: "outline"
"""
    )
    (folder / "init_model.netdef").write_text(
        """op { type: "GivenTensorFill" output: "filters" arg { name: "shape" ints: [ 2, 3, 3, 1 ] }
     arg { name: "values" floats: [ -1, 0, 1, -2, 0, 2, -1, 0, 1,   -1, -2, -1, 0, 0, 0, 1, 2, 1 ] } }
"""
    )


OUTLINE = """platform: "caffe2_netdef"
max_batch_size: 16
input { name: "picture" data_type: TYPE_FP32 dims: [ -1, -1, 1 ] }
"""

EXAMPLES = (
    Example("life", "torch", "naiad-torch[cpu]", life),
    Example("slug", "tensorflow", "naiad-tensorflow[cpu]", slug),
    Example("daylight", "openvino", "naiad-openvino[cpu]", daylight),
    Example("outline", "naiad_caffe2", "naiad-caffe2[cpu]", outline, OUTLINE),
)
