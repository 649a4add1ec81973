"""Libraries with operators of the user's own, which ONNX Runtime loads before it reads the model."""

import shutil
import subprocess

import pytest

from naiad.errors import InvalidArgumentError

SOURCE = """
#include <stdio.h>
#include <stdlib.h>

void *%s(void *options, const void *api) {
    FILE *file = fopen(getenv("REGISTERED"), "a");
    fputs("registered\\n", file);
    fclose(file);
    return NULL;
}
"""

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler")


@pytest.fixture
def registered(workbench, tmp_path, monkeypatch):
    """Builds a library with that function into the model's folder, and tells how often ONNX Runtime called it."""
    monkeypatch.setenv("REGISTERED", str(tmp_path / "registered"))

    def build(function="RegisterCustomOps"):
        source = tmp_path / "ops.c"
        source.write_text(SOURCE % function)
        workbench.directory.mkdir(exist_ok=True)
        subprocess.run(["cc", "-shared", "-fPIC", "-o", workbench.directory / "ops.so", source], check=True)
        return lambda: (tmp_path / "registered").read_text().count("registered")

    return build


def test_a_library_is_loaded_where_a_model_is_read_and_where_it_is_opened(workbench, models, registered, float_array):
    calls = registered()

    served = workbench.load(models.identity(["n", 1]), 'model_operations { op_library_filename: "ops.so" }')

    assert calls() == 2
    assert served.execute({"IN": float_array([[1]])})["OUT"].tolist() == [[1]]


def test_a_library_that_registers_nothing_is_refused_with_what_it_must_export(workbench, models, registered):
    registered("SomethingElse")

    with pytest.raises(
        InvalidArgumentError, match=r"ops.so' of model 'm' cannot be loaded: .* export RegisterCustomOps"
    ):
        workbench.load(models.identity(["n", 1]), 'model_operations { op_library_filename: "ops.so" }')


def test_a_library_outside_the_folder_of_the_model_is_refused(workbench, models):
    with pytest.raises(InvalidArgumentError, match=r"op_library_filename '\.\./ops\.so' of model 'm' leaves the"):
        workbench.load(models.identity(["n", 1]), 'model_operations { op_library_filename: "../ops.so" }')


def test_a_library_that_is_not_there_is_refused(workbench, models):
    with pytest.raises(InvalidArgumentError, match=r"op_library_filename '.*none\.so' of model 'm' cannot be loaded"):
        workbench.load(models.identity(["n", 1]), 'model_operations { op_library_filename: "none.so" }')
