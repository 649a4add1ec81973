"""Parameters of models and settings of backends are read alike by every plugin."""

import pytest

from naiad.errors import ConfigError
from naiad.options import boolean
from naiad_config.text import parse_text
from naiad_kit.backends.parameters import KnownNames, ParameterReader, count, default_batch_size, positive_count


def reader_of(settings=None, old_names=None, **parameters):
    written = "".join(
        f'parameters {{ key: "{key}" value {{ string_value: "{value}" }} }}' for key, value in parameters.items()
    )
    return ParameterReader(parse_text(f'name: "m" {written}'), settings, old_names)


def test_values_are_parsed_and_what_is_not_given_is_the_default():
    reader = reader_of({"limit": "3"}, THREADS=2, EMPTY="")

    results = [reader.read("THREADS", count, 0), reader.read("EMPTY", count, 7), reader.setting("limit", count, 0)]

    assert (results, reader.read("OTHER", boolean, None)) == ([2, 7, 3], None)
    reader.finish()


def test_all_mistakes_are_reported_at_once_each_with_its_key():
    reader = reader_of({"limit": "x"}, THREADS="-1", STREAMS="0", STREMAS="1")
    for key, parse in (("THREADS", count), ("STREAMS", positive_count)):
        reader.read(key, parse, 1)
    reader.setting("limit", count, 1)
    reader.refuse_misspelt(KnownNames("Abacus", ("THREADS", "STREAMS"), settings=("limit",)))

    with pytest.raises(ConfigError) as raised:
        reader.finish()

    assert str(raised.value).splitlines() == [
        "parameters[THREADS]: 'THREADS' cannot be '-1': it must not be negative",
        "parameters[STREAMS]: 'STREAMS' cannot be '0': it must be at least 1",
        "backend-config: 'limit' cannot be 'x': it must be a whole number",
        "parameters[STREMAS]: Abacus has no parameter 'STREMAS' (did you mean 'STREAMS'?)",
    ]


def test_a_parameter_may_have_its_old_name_which_mistakes_tell():
    reader = reader_of(None, {"CPU_THREADS": "THREADS"}, CPU_THREADS="many")

    assert reader.read("THREADS", count, 1) == 1
    assert [each.path for each in reader.problems] == ["parameters[CPU_THREADS]"]


def test_the_default_batch_size_is_a_setting():
    assert (default_batch_size({}), default_batch_size({"default-max-batch-size": "16"})) == (4, 16)
    with pytest.raises(ConfigError, match="'default-max-batch-size' cannot be 'big'"):
        default_batch_size({"default-max-batch-size": "big"})
