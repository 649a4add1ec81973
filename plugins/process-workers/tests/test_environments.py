"""Models with environments of their own."""

import errno
import io
import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import numpy as np
import pytest

from naiad.backend import ModelContext
from naiad.errors import NaiadError
from naiad_config.text import parse_text
from naiad_process_workers.messages import Kind
from naiad_process_workers.process import Environment, Limits, ModelProcess

from .conftest import TENSORS, Serve, Write

ONE = np.ones(1, np.float32)
NUMPY = Path(np.__file__).parents[1]
BODY = "import sys, only_here; x = x * 0 + only_here.NUMBER; assert 'naiad_http' not in sys.modules"


def pack(archive: Path, files: dict[str, str]) -> None:
    """Write an archive with these files and an interpreter, which imports from its folder `lib`."""
    python = f'#!/bin/sh\nPYTHONPATH="$(dirname $0)/../lib:{NUMPY}" exec {sys.executable} -S "$@"\n'
    with tarfile.open(archive, "w:gz") as content:
        for name, text in {"bin/python": python, **files}.items():
            member = tarfile.TarInfo(name)
            member.size, member.mode = len(text), 0o755
            content.addfile(member, io.BytesIO(text.encode()))


@pytest.mark.parametrize("name", ["python", "EXECUTION_ENV_PATH"])
def test_a_model_runs_in_the_environment_that_it_names(
    write: Write, served: Serve, environment: Path, name: str
) -> None:
    model = write("m", body=BODY, isolation="", **{name: str(environment)})

    with served(model) as client:
        assert client.infer(X=ONE)["Y"].tolist() == [42]


def test_what_the_model_spawns_finds_the_models_functions(write: Write, served: Serve, environment: Path) -> None:
    twice = "import multiprocessing\n\ndef twice(x):\n    import only_here\n    return x * 2\n"
    with_pool = "with multiprocessing.get_context('spawn').Pool(1) as pool:\n    x = pool.apply(twice, (x,))"
    model = write("m", body=with_pool, python=str(environment))
    (model / "1" / "model.py").write_text(twice + (model / "1" / "model.py").read_text())

    with served(model) as client:
        assert client.infer(X=ONE)["Y"].tolist() == [3]


def test_an_interpreter_can_be_named_and_lie_in_the_models_folder(
    write: Write, served: Serve, environment: Path
) -> None:
    model = write("m", body=BODY, python="own/bin/python")
    (model / "own").symlink_to(environment)

    with served(model) as client:
        assert client.infer(X=ONE)["Y"].tolist() == [42]


def test_an_archive_is_unpacked_once(
    write: Write, served: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    model = write("m", body=BODY, EXECUTION_ENV_PATH="$$TRITON_MODEL_DIRECTORY/own.tar.gz")
    pack(model / "own.tar.gz", {"lib/only_here.py": "NUMBER = 41"})

    for _ in range(2):
        with served(model) as client:
            assert client.infer(X=ONE)["Y"].tolist() == [42]
    assert len(list((tmp_path / "cache" / "naiad" / "environments").iterdir())) == 1


def test_an_archive_of_conda_is_mended_once_and_activated(
    write: Write, served: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PYTHONSTARTUP", "of the server")
    body = "x = x * 0 + int(os.environ['OF_PACKAGE'])"
    model = write("m", body=body, EXECUTION_ENV_PATH="own.tar.gz")
    mend = "import os, sys; print('PYTHONSTARTUP' in os.environ, file=open(sys.argv[0] + '-ran', 'a'))"
    files = {
        "conda-meta/history": "",
        "etc/conda/activate.d/package.sh": 'echo out; export OF_PACKAGE="$(cat "$CONDA_PREFIX"/number)"',
        "number": "41",
        "bin/conda-unpack": mend,
    }
    pack(model / "own.tar.gz", files)

    for _ in range(2):
        with served(model) as client:
            assert client.infer(X=ONE)["Y"].tolist() == [42]

    (ran,) = tmp_path.glob("cache/naiad/environments/*/bin/conda-unpack-ran")
    assert ran.read_text() == "False\n"


def test_a_conda_unpack_that_fails_is_a_warning(
    write: Write, served: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    model = write("m", EXECUTION_ENV_PATH="own.tar.gz")
    pack(model / "own.tar.gz", {"bin/conda-unpack": "raise SystemExit('cannot mend')"})

    with served(model) as client:
        assert client.infer(X=ONE)["Y"].tolist() == [2]

    assert f"conda-unpack of '{model}/own.tar.gz' ended with exit code 1: cannot mend" in caplog.text


@pytest.mark.parametrize("size", [9, 0, -1000])
def test_an_archive_that_is_none_or_cut_off_is_refused(
    write: Write, served: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    model = write("m", EXECUTION_ENV_PATH="own.tar.gz")
    pack(model / "own.tar.gz", {"noise": "".join(f"{number:x}" for number in range(100_000))})
    (model / "own.tar.gz").write_bytes((model / "own.tar.gz").read_bytes()[:size])

    with pytest.raises(NaiadError, match=r"parameter .* is 'own.tar.gz', which .* unpacked"), served(model):
        pass
    assert list((tmp_path / "cache" / "naiad" / "environments").iterdir()) == []


def test_a_full_disk_is_an_error_that_names_the_folder(
    write: Write, served: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    model = write("m", EXECUTION_ENV_PATH="own.tar.gz")
    pack(model / "own.tar.gz", {})

    def unpack(archive: Path, folder: Path) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("naiad_process_workers.environments.unpack", unpack)

    message = f"cannot be unpacked into '{tmp_path}/naiad/environments': .*No space left on device"
    with pytest.raises(NaiadError, match=message), served(model):
        pass


def interpreter(version: str) -> str | None:
    """A Python of that version which is another one than the server's, None if the machine has none."""
    folders = [*os.environ["PATH"].split(os.pathsep), "/usr/bin", "/usr/local/bin"]
    folders += map(str, Path.home().glob(f".pyenv/versions/{version}.*/bin"))
    ask = "import sys, venv; print(sys.version)"
    for path in (Path(folder, f"python{version}") for folder in folders):
        if path.is_file():
            ran = subprocess.run([path, "-c", ask], capture_output=True, text=True, check=False)
            if ran.returncode == 0 and ran.stdout.strip() != sys.version:
                return str(path)
    return None


@pytest.fixture(params=["3.11", "3.12", "3.13", "3.14"])
def other_python(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """An environment with numpy, for another Python than the server's."""
    python = interpreter(request.param)
    if python is None:
        pytest.skip(f"this machine has no other Python {request.param}")
    folder = tmp_path / "other"
    subprocess.run([python, "-m", "venv", "--without-pip", folder], check=True)
    if request.param == f"{sys.version_info.major}.{sys.version_info.minor}":
        (packages,) = folder.glob("lib/python*/site-packages")
        for path in NUMPY.glob("numpy*"):
            (packages / path.name).symlink_to(path)
        return folder
    uv = shutil.which("uv") or str(Path(sys.executable).with_name("uv"))
    install = [uv, "pip", "install", "--quiet", "--offline", "--python", folder, "numpy"]
    if subprocess.run(install, capture_output=True, check=False).returncode:
        pytest.skip(f"uv has no numpy for Python {request.param} in its cache: uv pip install numpy puts it there")
    return folder


def test_a_model_runs_on_another_python_than_the_server(
    write: Write, served: Serve, other_python: Path, caplog: pytest.LogCaptureFixture
) -> None:
    code = """
        import sys
        import numpy as np
        import triton_python_backend_utils as pb_utils

        class TritonPythonModel:
            def execute(self, requests):
                responses = []
                for request in requests:
                    x = pb_utils.get_input_tensor_by_name(request, "X").as_numpy()
                    if x[0] < 0:
                        raise ValueError("of the model")
                    if x[0] == 1:
                        inputs = [pb_utils.Tensor("X", x)]
                        call = pb_utils.InferenceRequest("", 0, inputs, ["Y"], "beside")
                        x = pb_utils.get_output_tensor_by_name(call.exec(), "Y").as_numpy()
                    version = np.array([sys.version], object)
                    outputs = [pb_utils.Tensor("Y", x * 2), pb_utils.Tensor("VERSION", version)]
                    responses.append(pb_utils.InferenceResponse(outputs))
                return responses
    """
    config = TENSORS + 'output { name: "VERSION" data_type: TYPE_STRING dims: 1 }'
    model = write("m", code, config, python=str(other_python))
    python = [other_python / "bin" / "python", "-c", "import sys; print(sys.version)"]
    version = subprocess.run(python, capture_output=True, text=True, check=True).stdout.strip()

    with served(model, write("beside", isolation="thread")) as client:
        small, large = client["m"].infer(X=ONE), client["m"].infer(X=np.arange(7, 2**20, dtype=np.float32))
        with pytest.raises(NaiadError, match="of the model"):
            client["m"].infer(X=-ONE)

    assert small["Y"].tolist() == [4]
    assert large["Y"].tolist() == np.arange(14, 2**21, 2, dtype=np.float32).tolist()
    assert small["VERSION"].tolist() == [version.encode()]
    assert version != sys.version
    assert 'raise ValueError("of the model")' in caplog.text


@pytest.mark.parametrize("name", ["python", "EXECUTION_ENV_PATH"])
def test_an_environment_that_is_not_there_is_refused(write: Write, served: Serve, name: str) -> None:
    model = write("m", **{name: "nowhere"})

    with pytest.raises(NaiadError, match=f"parameter '{name}' of model 'm'.*there is no"), served(model):
        pass


def test_a_folder_without_an_interpreter_is_refused(write: Write, served: Serve) -> None:
    with pytest.raises(NaiadError, match="there is no interpreter"), served(write("m", python="1")):
        pass


def test_an_environment_without_numpy_is_refused_with_the_reason(write: Write, served: Serve, tmp_path: Path) -> None:
    folder = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)

    model = write("m", python=str(folder))

    with pytest.raises(NaiadError, match=r"cannot run it: ModuleNotFoundError.*numpy"), served(model):
        pass


def test_an_interpreter_that_cannot_say_what_it_lacks_is_named_with_what_is_needed(
    write: Write, served: Serve, tmp_path: Path
) -> None:
    """Python 2 and 3.6 end with a SyntaxError or ImportError of the first script, before anything can be sent."""
    python = tmp_path / "python2"
    python.write_text("#!/bin/sh\necho SyntaxError >&2\nexit 1\n")
    python.chmod(0o755)
    expected = f"ended: exit code 1, before it served; '{python}' must be Python 3.11 or newer, with numpy"

    with pytest.raises(NaiadError, match=expected), served(write("m", python=str(python))):
        pass


def test_the_reason_is_known_of_a_process_that_ended_before_its_first_step(tmp_path: Path) -> None:
    folder = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    context = ModelContext(parse_text('name: "m"'), 1, tmp_path, tmp_path)
    process = ModelProcess(context, Environment(str(folder / "bin" / "python"), None), Limits())
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)

    with pytest.raises(NaiadError, match="cannot run it: ModuleNotFoundError"):
        process.step(Kind.CLOSE)


def test_a_program_that_is_not_python_and_goes_on_is_ended(tmp_path: Path) -> None:
    program = tmp_path / "program"
    program.write_text("#!/bin/sh\nexec sleep 1000\n")
    program.chmod(0o755)
    context = ModelContext(parse_text('name: "m"'), 1, tmp_path, tmp_path)
    process = ModelProcess(context, Environment(str(program), None), Limits(hello=0.1))

    expected = f"did not serve within 0.1 s; '{program}' must be Python 3.11 or newer, with numpy"
    with pytest.raises(NaiadError, match=expected):
        process.step(Kind.COMPLETE)
