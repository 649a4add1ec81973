"""A library that cannot be loaded is refused with the reason and the next step, and one that can is loaded safely."""

import numpy as np
import pytest

from naiad.errors import InvalidArgumentError, NotFoundError, UnsupportedError
from naiad_custom.include import include_dir

X = {"X": np.array([1, 2], np.float32)}
X_AND_Y = """
input { name: "X" data_type: TYPE_FP32 dims: 2 }
output { name: "Y" data_type: TYPE_FP32 dims: 2 }
"""
EMPTY = "int nothing;\n\n"
MISSPELT = """#include "naiad_custom.h"
int naiad_initialise(void);
int naiad_initialise(void) { return 0; }
int naiad_execute(void *instance, naiad_batch *batch) { return instance == (void *)batch; }
void naiad_finalize(void *instance) { (void)instance; }
"""
FUNCTIONS = """int naiad_initialize(void); int naiad_execute(void); int naiad_finalize(void);
int naiad_initialize(void) { return 0; }
int naiad_execute(void) { return 0; }
int naiad_finalize(void) { return 0; }
"""
STAMPED = """unsigned long naiad_abi(void);
unsigned long naiad_abi(void) { return %s; }
"""
INNER = "int twice(int x);\nint twice(int x) { return 2 * x; }\n"
USES_INNER = """#include "naiad_custom.h"
int twice(int x);
int naiad_initialize(const naiad_setup *setup, void **instance) { (void)setup, (void)instance; return 0; }
int naiad_execute(void *instance, naiad_batch *batch) {
  const naiad_tensor *x = naiad_input(batch->requests, "X");
  float *y = (float *)naiad_output(batch, 0, "Y", "FP32", x->dims, x->ndims, x->byte_size);
  (void)instance;
  for (int i = 0; i < 2; ++i) y[i] = (float)twice((int)((const float *)x->content)[i]);
  return 0;
}
void naiad_finalize(void *instance) { (void)instance; }
"""


def linked(compiler, folder, name, *options):
    """A library that needs lib`name`.so, and that one; no name twice, because the process knows it by that."""
    inner = folder / f"lib{name}.so"
    inner.write_bytes(compiler.library(INNER, f"-Wl,-soname,lib{name}.so").read_bytes())
    return compiler.library(USES_INNER, f"-L{folder}", f"-l{name}", *options), inner


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ([], "the version folder is empty; build it there, or name it with default_model_filename"),
        (["libadd.so", "w.bin"], "the version folder has libadd.so, w.bin; build it there, or name it with"),
        (["model.py"], 'the version folder has model.py; model.py is served with backend: "python"; for a library,'),
    ],
)
def test_a_missing_library_is_reported_with_what_is_there(workbench, files, message):
    for file in files:
        workbench.path(file).write_text("")

    with pytest.raises(NotFoundError) as missing:
        workbench.complete()

    assert f"unable to find '{workbench.directory / '1' / 'libcustom.so'}' for model 'm': {message}" in str(
        missing.value
    )


def test_default_model_filename_names_another_file(workbench, compiler):
    workbench.put(compiler.library("echo.c"), "libecho.so")

    model = workbench.load(f'default_model_filename: "libecho.so" {X_AND_Y}')

    (reply,) = model.execute(X)
    assert reply.outputs["Y"].tolist() == [1, 2]


def test_a_file_that_is_no_library_is_refused(workbench):
    workbench.path("libcustom.so").write_text("#!/bin/sh\n")

    with pytest.raises(InvalidArgumentError, match=r"'.*/m/1/libcustom.so': it is a script"):
        workbench.complete()


def test_a_damaged_library_is_refused_in_the_loaders_words(workbench, compiler):
    path = workbench.put(compiler.library("echo.c"))
    path.write_bytes(path.read_bytes()[:200])

    with pytest.raises(InvalidArgumentError, match=r"the loader says: .*libcustom.so.*; `ldd -r .*` may say more"):
        workbench.complete()


def test_a_library_for_another_machine_is_refused(workbench, compiler):
    path = workbench.put(compiler.library("echo.c"))
    content = bytearray(path.read_bytes())
    content[18:20] = (22).to_bytes(2, "little")
    path.write_bytes(content)

    with pytest.raises(InvalidArgumentError, match="s390x"):
        workbench.complete()


def test_a_library_without_the_functions_is_refused(workbench, compiler):
    workbench.put(compiler.library(EMPTY))

    with pytest.raises(InvalidArgumentError) as refused:
        workbench.complete()

    assert str(refused.value).endswith(
        "it has no naiad_initialize, no naiad_execute, no naiad_finalize, no naiad_abi; include naiad_custom.h, which "
        f"lies in {include_dir()}, and write the functions that it declares"
    )


@pytest.mark.parametrize(
    ("function", "message"),
    [
        ("TRITONBACKEND_ModelInstanceExecute", "it was written for Triton's C API of backends"),
        ("CustomExecute", "it was written for the C API that Triton's custom backends had"),
    ],
)
def test_a_library_for_another_interface_is_reported_as_such(workbench, compiler, function, message):
    workbench.put(compiler.library(f"int {function}(void);\nint {function}(void) {{ return 0; }}\n"))

    with pytest.raises(InvalidArgumentError, match=message):
        workbench.complete()


def test_a_misspelt_function_is_missing(workbench, compiler):
    workbench.put(compiler.library(MISSPELT))

    with pytest.raises(InvalidArgumentError, match="it has no naiad_initialize"):
        workbench.complete()


@pytest.mark.parametrize(
    ("stamp", "message"),
    [
        (
            "7ul << 32",
            "it was built with version 7 of naiad_custom.h, and this server has version 1; build it again",
        ),
        ("(1ul << 32) + 5", "its structs take 5 bytes, and those of this server 248: it was built with an option that"),
    ],
)
def test_a_library_of_another_version_is_refused(workbench, compiler, stamp, message):
    workbench.put(compiler.library(FUNCTIONS + STAMPED % stamp))

    with pytest.raises(UnsupportedError) as refused:
        workbench.complete()

    assert message in str(refused.value)


def test_a_missing_dependency_is_reported_in_the_loaders_words_with_the_next_step(workbench, compiler, tmp_path):
    workbench.put(linked(compiler, tmp_path, "absent")[0])

    with pytest.raises(InvalidArgumentError) as refused:
        workbench.complete()

    assert "the loader says: libabsent.so: " in str(refused.value)
    assert "put it beside 'libcustom.so' and link with -Wl,-rpath,'$ORIGIN'; `ldd " in str(refused.value)


def test_a_missing_symbol_is_reported_with_the_next_step(workbench, compiler):
    workbench.put(compiler.library(USES_INNER))

    with pytest.raises(InvalidArgumentError, match=r"undefined symbol: twice.*; link the library with what has that"):
        workbench.complete()


def test_a_library_finds_what_lies_beside_it(workbench, compiler, tmp_path):
    created, inner = linked(compiler, tmp_path, "beside", "-Wl,-rpath,$ORIGIN")
    workbench.put(inner, inner.name)

    (reply,) = workbench.serve(created).execute(X)

    assert reply.outputs["Y"].tolist() == [2, 4]


def test_a_library_finds_what_lies_in_another_folder_beside_its_own(workbench, compiler, tmp_path):
    created, inner = linked(compiler, tmp_path, "apart", "-Wl,-rpath,$ORIGIN/../lib")
    workbench.path(f"../lib/{inner.name}").write_bytes(inner.read_bytes())

    (reply,) = workbench.serve(created, X_AND_Y).execute(X)

    assert reply.outputs["Y"].tolist() == [2, 4]
