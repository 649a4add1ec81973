"""A model file and its neighbours are importable for one another, and for no other model."""

import importlib
import logging
import sys
import traceback
from pathlib import Path

import pytest

from naiad.errors import InvalidArgumentError
from naiad_custom.files import ModelFile

FUNCTION = """
    from naiad_custom import INT64, Array, model
    {imports}

    @model
    def answer(x: Array[INT64, 1]) -> Array[INT64, 1]:
        {inside}
        return x * FACTOR
"""


def code(imports: str, inside: str = "pass") -> str:
    return FUNCTION.format(imports=imports, inside=inside)


@pytest.mark.parametrize(
    "imports",
    [
        "from factors import FACTOR",
        "import factors; FACTOR = factors.FACTOR",
        "from .factors import FACTOR",
        "from shared import FACTOR",
        "from package.deep import FACTOR",
        "import package.deep as deep; FACTOR = deep.FACTOR",
        "import package.deep; FACTOR = package.deep.FACTOR",
        "from loose.deep import FACTOR",
    ],
)
def test_neighbours_in_the_version_and_the_model_folder_are_importable(folder, batch_of, imports):
    files = {
        "1/factors.py": "FACTOR = 5",
        "shared.py": "from factors import FACTOR",
        "1/package/__init__.py": "",
        "1/package/deep.py": "from factors import FACTOR",
        "loose/deep.py": "FACTOR = 5",
    }
    folder.write(code(imports), files=files)

    answer = folder.instance().execute(batch_of({"x": [2]}, batching=False))

    assert answer["output"].tolist() == [10]


def test_a_neighbour_may_be_imported_while_the_model_works(folder, batch_of):
    folder.write(code("", "from factors import FACTOR"), files={"1/factors.py": "FACTOR = 5"})

    answer = folder.instance().execute(batch_of({"x": [2]}, batching=False))

    assert answer["output"].tolist() == [10]


def test_two_versions_have_neighbours_of_one_name(folder, batch_of):
    for version in (1, 2):
        factors = {f"{version}/factors.py": f"FACTOR = {version}"}
        folder.write(code("from factors import FACTOR"), files=factors, version=version)

    answers = [folder.instance(version).execute(batch_of({"x": [7]}, batching=False)) for version in (1, 2)]

    assert [answer["output"].item() for answer in answers] == [7, 14]


def test_neighbours_are_not_seen_by_others(folder):
    folder.write(code("from factors import FACTOR"), files={"1/factors.py": "FACTOR = 5"})
    path = list(sys.path)

    folder.model()

    assert sys.path == path
    with pytest.raises(ImportError):
        importlib.import_module("factors")


def test_the_standard_library_keeps_its_names(folder, batch_of):
    folder.write(code("import json; FACTOR = json.loads('5')"), files={"1/json.py": "raise SystemExit"})

    assert folder.instance().execute(batch_of({"x": [2]}, batching=False))["output"].item() == 10


def test_a_folder_of_weights_does_not_hide_an_installed_package(folder, batch_of):
    folder.write(code("import numpy; FACTOR = int(numpy.int64(5))"), files={"1/numpy/weights.txt": ""})

    assert folder.instance().execute(batch_of({"x": [2]}, batching=False))["output"].item() == 10


def test_a_file_without_neighbours_has_ordinary_builtins(folder):
    folder.write(code("FACTOR = 5"))

    file = ModelFile(folder.context(), folder.path / "1" / "model.py", (folder.path / "1", folder.path))

    assert file.module.__builtins__["__import__"] is __import__
    file.close()


def test_closing_forgets_the_modules(folder):
    folder.write(code("from factors import FACTOR"), files={"1/factors.py": "FACTOR = 5"})
    file = ModelFile(folder.context(), folder.path / "1" / "model.py", (folder.path / "1", folder.path))
    package = file.package
    assert f"{package}.factors" in sys.modules

    file.close()

    assert [name for name in sys.modules if name.startswith(package)] == []


def test_loading_writes_nothing_into_the_repository(folder):
    folder.write(code("from factors import FACTOR"), files={"1/factors.py": "FACTOR = 5"})
    before = sorted(folder.path.rglob("*"))

    folder.instance()

    assert sorted(folder.path.rglob("*")) == before


def test_a_file_rewritten_at_once_is_read_anew(folder, batch_of):
    answers = []
    for factor in (5, 6):
        folder.write(code(f"FACTOR = {factor}"))
        answers.append(folder.instance().execute(batch_of({"x": [1]}, batching=False))["output"].item())

    assert answers == [5, 6]


def test_the_top_level_of_a_file_runs_once_a_load(folder):
    top = """
    from pathlib import Path
    FACTOR = 1
    with Path(__file__).with_name('log').open('a') as log:
        log.write('x')
    """
    folder.write(code(top))

    folder.instance()

    assert (folder.path / "1" / "log").read_text() == "x"


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        ("def f(:", r"model\.py:1: SyntaxError: invalid syntax$"),
        ("import nowhere_to_be_found", r"model\.py:1: ModuleNotFoundError: No module named 'nowhere_to_be_found'"),
        ("x = 1\nraise SystemExit(3)", r"model\.py:2: SystemExit: 3"),
        ("x = 1", r"model\.py holds no model: mark a function or class with @naiad_custom\.model"),
    ],
)
def test_a_file_that_cannot_be_imported_is_reported_with_its_line(folder, broken, message):
    folder.write(broken)

    with pytest.raises(InvalidArgumentError, match=message):
        folder.completed()


@pytest.mark.parametrize(
    ("broken", "frames"), [("def f(:", []), ("\ndef f():\n    1 / 0\nf()", ["model.py:3", "model.py:2"])]
)
def test_the_traceback_of_a_file_begins_in_the_file(folder, broken, frames):
    folder.write(broken)

    with pytest.raises(InvalidArgumentError) as caught:
        folder.completed()

    lines = traceback.extract_tb(caught.value.__cause__.__traceback__)
    assert [f"{Path(line.filename).name}:{line.lineno}" for line in lines] == frames


def test_an_error_in_a_neighbour_names_the_neighbour(folder):
    folder.write(code("from factors import FACTOR"), files={"1/factors.py": "x = 1\n1 / 0"})

    with pytest.raises(InvalidArgumentError, match=r"1/factors\.py:2: ZeroDivisionError"):
        folder.completed()


def test_a_missing_file_is_reported(folder):
    folder.write(config="max_batch_size: 1")

    with pytest.raises(InvalidArgumentError, match=r"there is no model file '.*/1/model\.py'"):
        folder.completed()


def test_two_marked_functions_in_one_file_are_reported_by_name(folder):
    folder.write("""
        from naiad_custom import INT64, Array, model

        @model
        def one(x: Array[INT64, 1]) -> Array[INT64, 1]:
            return x

        @model
        def two(x: Array[INT64, 1]) -> Array[INT64, 1]:
            return x
    """)

    with pytest.raises(InvalidArgumentError, match="@model marks one, two; a file holds one model"):
        folder.completed()


def test_the_logger_of_a_model_file_has_the_models_own_lines(folder, batch_of, caplog):
    folder.write(code("import logging; FACTOR = 1", 'logging.getLogger(__name__).warning("look")'))
    with caplog.at_level(logging.WARNING):
        folder.instance().execute(batch_of({"x": [1]}, batching=False))

    assert caplog.records[-1].pathname == str(folder.path / "1" / "model.py")


def test_a_model_file_that_follows_its_link_has_the_path_and_the_neighbours_of_the_file(folder, tmp_path, batch_of):
    source = tmp_path / "written" / "model.py"
    source.parent.mkdir()
    source.write_text(
        "from naiad_custom import INT64, Array, model\nfrom factors import FACTOR\n\n@model\n"
        "def answer(x: Array[INT64, 1]) -> Array[INT64, 1]:\n    assert 'written' in __file__\n    return x * FACTOR\n"
    )
    (source.parent / "factors.py").write_text("FACTOR = 5")
    folder.write(config='parameters { key: "follow_link" value { string_value: "true" } }')
    (folder.path / "1" / "model.py").symlink_to(source)

    assert folder.instance().execute(batch_of({"x": [2]}, batching=False))["output"].item() == 10


def test_the_top_level_of_a_file_that_a_link_leads_to_runs_once_a_load(folder, tmp_path):
    folder.write(
        code(
            "from pathlib import Path; FACTOR = 1; log = Path(__file__ + '.log').open('a'); log.write('x'); log.close()"
        ),
        config='parameters { key: "follow_link" value { string_value: "true" } }',
    )
    (folder.path / "1" / "model.py").rename(tmp_path / "written.py")
    (folder.path / "1" / "model.py").symlink_to(tmp_path / "written.py")

    folder.instance()

    assert (tmp_path / "written.py.log").read_text() == "x"


def test_the_line_of_an_error_is_that_of_the_file_that_the_link_leads_to(folder, tmp_path):
    (tmp_path / "written.py").write_text("x = 1\nraise ValueError('no')\n")
    folder.write(config='parameters { key: "follow_link" value { string_value: "true" } }')
    (folder.path / "1" / "model.py").symlink_to(tmp_path / "written.py")

    with pytest.raises(InvalidArgumentError, match=rf"^{tmp_path}/written\.py:2: ValueError: no"):
        folder.instance()
