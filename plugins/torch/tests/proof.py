"""Proof of naiad-torch alone beside the kernel, in an environment of its own."""

from pathlib import Path

from naiad_testing import serve

model = "from torch import nn\n\nclass Double(nn.Module):\n    def forward(self, x):\n        return x + x\n"
config = 'backend: "pytorch" runtime: "model.py"\n' + "\n".join(
    kind + ' { name: "' + name + '" data_type: TYPE_FP32 dims: 2 }' for kind, name in (("input", "x"), ("output", "y"))
)
Path("models/double/1").mkdir(parents=True)
Path("models/double/1/model.py").write_text(model)
Path("models/double/config.pbtxt").write_text(config)
with serve("models") as client:
    (out,) = client.infer(x=[1, 2]).values()
    assert out.tolist() == [2, 4], out
