"""PyTorch models made in code, and the backend that loads them without a server."""

import fcntl
import warnings
from hashlib import sha256
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from naiad_testing.workbench import Workbench
from naiad_torch.backend import TorchBackend


class AddSub(nn.Module):
    """SUM, DIFFERENCE of a and b."""

    def forward(self, a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
        return a + b, a - b


class Identity(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x


class Gather(nn.Module):
    """Row x of a table of four: fails for an index of 4 and more."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Parameter(torch.tensor([10.0, 11.0, 12.0, 13.0]), requires_grad=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.table[x]


class FromDict(nn.Module):
    def forward(self, sent: dict[str, Tensor]) -> Tensor:
        return sent["left"] - sent["right"]


class TwoDicts(nn.Module):
    def forward(self, one: dict[str, Tensor], other: dict[str, Tensor]) -> Tensor:
        return one["x"] + other["x"]


class OfNumber(nn.Module):
    def forward(self, x: Tensor, number: int) -> Tensor:
        return x + number


class Lengths(nn.Module):
    """How long each string is, and the strings in reverse order."""

    def forward(self, texts: list[str]) -> tuple[Tensor, list[str]]:
        lengths = torch.tensor([len(text) for text in texts])
        turned: list[str] = [texts[len(texts) - 1 - index] for index in range(len(texts))]
        return lengths, turned


class Scalar(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x.sum()


class ListOfTensors(nn.Module):
    def forward(self, x: Tensor) -> list[Tensor]:
        return [x, x]


class Accumulator(nn.Module):
    """A model of sequences: OUT = x + state where the sequence does not start, and the state is OUT."""

    def forward(self, x: Tensor, start: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        out = x + state * (1 - start)
        return out, out


class Halves(nn.Module):
    """A model of sequences: OUT = x + state, and the state is half of it."""

    def forward(self, x: Tensor, start: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        out = x + state
        return out, out / 2


class Ragged(nn.Module):
    """The sum of each request's part of x, whose ends are in `ends`."""

    def forward(self, x: Tensor, ends: Tensor) -> Tensor:
        sums = torch.cumsum(x, 0)[(ends - 1).to(torch.int64)]
        return torch.diff(sums, prepend=torch.zeros(1)).unsqueeze(1)


class WithDefault(nn.Module):
    def forward(self, x: Tensor, scale: Tensor | None = None) -> Tensor:
        return x * 2 if scale is None else x * scale


class Nested(nn.Module):
    def forward(self, pair: tuple[Tensor, dict[str, Tensor]], *, mask: Tensor) -> dict[str, Any]:
        first, named = pair
        return {"sum": first + named["k"], "both": (first * mask, mask)}


class WithNothing(nn.Module):
    def forward(self, x: Tensor) -> tuple[None, Tensor]:
        return None, x + 1


class Inplace(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x.add_(1)


MODELS = (
    AddSub,
    Identity,
    Gather,
    FromDict,
    TwoDicts,
    OfNumber,
    Lengths,
    Scalar,
    ListOfTensors,
    Accumulator,
    Halves,
    WithDefault,
    Nested,
    WithNothing,
    Inplace,
)


@pytest.fixture(scope="session")
def models() -> SimpleNamespace:
    """The classes of models, by name."""
    return SimpleNamespace(**{model.__name__: model for model in MODELS})


def write_script(workbench: Workbench, model: nn.Module) -> None:
    """Write the model as TorchScript."""
    with warnings.catch_warnings(category=DeprecationWarning, action="ignore"):  # for those who make TorchScript
        torch.jit.script(model).save(str(workbench.path("model.pt")))


def write_export(
    workbench: Workbench, model: nn.Module, arguments: tuple[Any, ...], keywords: Any = None, shapes: Any = None
) -> None:
    """Write the model as an exported program."""
    program = torch.export.export(model, arguments, kwargs=keywords, dynamic_shapes=shapes)
    torch.export.save(program, str(workbench.path("model.pt2")))


class TorchWorkbench(Workbench):
    """Writes models in each of their forms."""

    def script(self, model: nn.Module, config: str) -> Any:
        """The model as TorchScript, loaded."""
        write_script(self, model)
        return self.load(f'platform: "pytorch_libtorch" {config}')

    def export(self, model: nn.Module, arguments: tuple[Any, ...], keywords: Any = None, shapes: Any = None) -> None:
        """Write the model as an exported program."""
        write_export(self, model, arguments, keywords, shapes)


@pytest.fixture
def workbench(tmp_path: Path) -> TorchWorkbench:
    return TorchWorkbench(tmp_path / "m", TorchBackend())


@pytest.fixture(scope="session")
def compiled(request: pytest.FixtureRequest) -> Path:
    """AddSub over FP32[n, 4] as a package of AOTInductor.

    Compiling takes 20 s of a processor: all processes of a test run share one package, and pytest's cache keeps it for
    further runs with this file, this PyTorch and this kind of processor.
    """
    cpu = Path("/proc/cpuinfo").read_text().partition("flags")[2].partition("\n")[0]
    key = sha256(f"{torch.__version__}{cpu}{Path(__file__).read_text()}".encode()).hexdigest()[:16]
    folder = request.config.cache.mkdir(f"aoti-{key}")
    path = folder / "model.pt2"
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not path.is_file():
            (folder / "new").mkdir(exist_ok=True)
            compile_package(folder / "new" / "model.pt2")  # the name is in the package too
            (folder / "new" / "model.pt2").rename(path)
    return path


def compile_package(path: Path) -> None:
    """Compile AddSub into that file."""
    rows = torch.export.Dim("rows", min=1, max=64)
    examples = (torch.ones(2, 4), torch.ones(2, 4))  # one tensor for both would be one argument
    program = torch.export.export(AddSub(), examples, dynamic_shapes={"a": {0: rows}, "b": {0: rows}})
    # 32 s with the optimisation and the vector instructions that a package of the usual build has
    # and 16 s with precompiled headers, which pay for the second package alone
    quickly = {
        "cpp.vec_isa_ok": False,
        "aot_inductor.compile_wrapper_opt_level": "O0",
        "aot_inductor.precompile_headers": False,
    }
    with warnings.catch_warnings(action="ignore"):  # for those who write PyTorch
        torch._inductor.aoti_compile_and_package(program, package_path=str(path), inductor_configs=quickly)
