"""A library says what its configuration need not, and what the user wrote is held against it."""

import pytest

from naiad.errors import ConfigError, NotFoundError
from naiad_config import DataType
from naiad_config.text import parse_text
from naiad_custom.shared_library.completion import completed

SAYS = """#include "naiad_custom.h"
int naiad_complete(const naiad_setup *setup) {
  const char *says = naiad_parameter(setup, "says");
  if (says == NULL) return naiad_refuse(setup, NAIAD_NOT_FOUND, "no weights in the version folder");
  if (strcmp(setup->instance_name, "") != 0) return NAIAD_INTERNAL;
  naiad_configure(setup, says);
  return 0;
}
int naiad_initialize(const naiad_setup *setup, void **instance) { (void)setup, (void)instance; return 0; }
int naiad_execute(void *instance, naiad_batch *batch) { return instance == (void *)batch; }
void naiad_finalize(void *instance) { (void)instance; }
"""
LIBRARY = parse_text("""
max_batch_size: 8
input { name: "A" data_type: TYPE_FP32 dims: [ 4, -1 ] }
input { name: "B" data_type: TYPE_STRING dims: 1 optional: true }
output [ { name: "C" data_type: TYPE_INT64 dims: 4 }, { name: "D" data_type: TYPE_INT64 dims: [ 1 ] reshape { } } ]
parameters { key: "k" value { string_value: "library" } }
parameters { key: "own" value { string_value: "library" } }
""")


def complete(text):
    return completed(parse_text(text), LIBRARY)


def test_an_empty_configuration_becomes_the_librarys_with_dynamic_batching():
    result = complete('name: "m"')

    assert (result.name, result.max_batch_size, result.input, result.output) == ("m", 8, LIBRARY.input, LIBRARY.output)
    assert result.dynamic_batching is not None
    assert completed(result, LIBRARY) == result


def test_what_the_user_wrote_stays():
    completed = complete("""
        max_batch_size: 2 output { name: "C" dims: 4 } input { name: "B" dims: -1 }
        parameters { key: "k" value { string_value: "user" } } instance_group { count: 3 }
    """)

    assert (completed.max_batch_size, [each.name for each in completed.input]) == (2, ["B", "A"])
    assert completed.input[0].dims == (-1,)
    assert [(each.name, each.data_type) for each in completed.output] == [("C", DataType.TYPE_INT64)]
    assert {key: value.string_value for key, value in completed.parameters.items()} == {"k": "user", "own": "library"}
    assert completed.instance_group[0].count == 3


def test_the_librarys_scheduler_counts_where_the_user_has_none():
    library = parse_text(
        'max_batch_size: 4 sequence_batching { control_input { name: "S" } } version_policy { all { } }'
    )

    own = completed(parse_text("dynamic_batching { }"), library)
    filled = completed(parse_text(""), library)

    assert (own.sequence_batching, own.dynamic_batching is not None) == (None, True)
    assert (filled.sequence_batching, filled.dynamic_batching) == (library.sequence_batching, None)
    assert filled.version_policy == library.version_policy


def test_inputs_that_the_server_fills_are_not_asked_of_clients():
    completed = complete('sequence_batching { control_input { name: "A" } }')

    assert [each.name for each in completed.input] == ["B"]


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ("max_batch_size: 9", "max_batch_size: the library takes batches of at most 8, and this is 9 (write 8, or"),
        ('input { name: "E" }', "input[0].name: the library has no input 'E' (it has A, B)"),
        ('output { name: "E" }', "output[0].name: the library has no output 'E' (it has C, D)"),
        ('input { name: "A" data_type: TYPE_FP16 }', "input[0].data_type: 'A' is TYPE_FP16 here and TYPE_FP32 in the"),
        ('input { name: "A" dims: [ 5, 2 ] }', "input[0].dims: 'A' has dims [5,2] here and [4,-1] in the library"),
        ('output { name: "C" dims: [ 4, 1 ] }', "output[0].dims: 'C' has dims [4,1] here and [4] in the library"),
        ('output { name: "D" dims: 1 }', "output[0].dims: 'D' has dims [1] here and [] in the library"),
    ],
)
def test_a_contradiction_is_reported_with_both_sides(config, message):
    with pytest.raises(ConfigError) as refused:
        complete(config)

    assert message in str(refused.value)


def test_a_library_completes_its_configuration(workbench, compiler):
    says = "input { name: 'X' data_type: TYPE_FP32 dims: 2 } output { name: 'Y' data_type: TYPE_FP32 dims: 2 }"

    model = workbench.serve(compiler.library(SAYS), "", {"says": says})

    assert [(each.name, each.dims) for each in (*model.config.input, *model.config.output)] == [
        ("X", (2,)),
        ("Y", (2,)),
    ]


def test_a_library_that_cannot_describe_itself_says_why(workbench, compiler):
    with pytest.raises(NotFoundError, match=r"^model 'm': no weights in the version folder$"):
        workbench.serve(compiler.library(SAYS), "")


def test_a_configuration_that_is_invalid_is_reported_with_its_position(workbench, compiler):
    with pytest.raises(ConfigError, match=r"naiad_complete of libcustom\.so:1:1: .*'inputs'"):
        workbench.serve(compiler.library(SAYS), "", {"says": "inputs { }"})
