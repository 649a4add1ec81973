"""The plugin as a plugin: light to import, typed for its users, and alike whatever it serves."""

import subprocess
import sys
import tomllib
from pathlib import Path
from textwrap import dedent

HERE = Path(__file__).parent


def test_asking_for_the_hooks_imports_no_numpy():
    code = "import sys, naiad_custom; print([each for each in ('numpy', 'torch', 'asyncio') if each in sys.modules])"

    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout

    assert printed.strip() == "[]"


def test_the_wheel_has_the_module_that_models_import():
    project = tomllib.loads((HERE.parent / "pyproject.toml").read_text())

    packages = project["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]

    assert packages == ["src/naiad_custom", "src/triton_python_backend_utils", "src/c_python_backend_utils"]


def test_user_code_passes_a_strict_type_check(tmp_path, pytestconfig):
    code = dedent("""
        from typing import NamedTuple, TypedDict
        import numpy as np
        from naiad_custom import BF16, BYTES, FP32, Array, AsyncServer, Server, model

        class Pair(NamedTuple):
            total: Array[FP32, 16]
            difference: Array[FP32, -1, 16]

        class Record(TypedDict):
            text: Array[BYTES, 1]

        @model(max_batch_size=8)
        def both(a: Array[FP32, 16], b: Array[FP32, 16] | None = None) -> Pair:
            other = a if b is None else b
            return Pair(total=a + other, difference=a - other)

        @model
        def describe(a: Array[BF16, 2]) -> Record:
            return {"text": np.array([str(a)], dtype=object)}

        @model
        class Scale:
            def execute(self, x: Array[FP32, 4]) -> Array[FP32, 4]:
                return x * np.float32(2)

        @model
        def asks(x: Array[FP32, 4], server: Server) -> Array[FP32, 4]:
            return server.infer("scale", x=x)["output"]

        @model
        async def awaits(x: Array[FP32, 4], server: AsyncServer) -> Array[FP32, 4]:
            async for outputs in server.stream("scale", x=x):
                x = outputs["output"]
            return (await server.infer("scale", x=x))["output"]

        wrong: int = both(np.zeros(16, np.float32)).total
    """)
    (tmp_path / "model.py").write_text(code)
    cache = pytestconfig.cache.mkdir("mypy-of-models")  # what mypy knows of numpy, which takes it 5 s to read

    checked = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(cache), str(tmp_path / "model.py")],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )

    assert checked.stdout.count("error:") == 1, checked.stdout
    assert 'variable has type "int"' in checked.stdout
