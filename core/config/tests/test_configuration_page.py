"""The page about configurations against the code."""

import re
from pathlib import Path

import pytest

from naiad.errors import ConfigError
from naiad_config import DataType, ModelConfig
from naiad_config.fields import proto_name, specs
from naiad_config.text import parse_text
from naiad_config.validation import problems

PAGE = (Path(__file__).parents[3] / "docs" / "configuration.md").read_text(encoding="utf-8")


def messages(cls=ModelConfig):
    """The message class and all that it is made of."""
    results = {cls}
    for spec in specs(cls).values():
        if spec.is_message:
            results |= messages(spec.type)
    return results


@pytest.mark.parametrize("cls", sorted(messages(), key=proto_name), ids=proto_name)
def test_every_key_is_on_the_page(cls):
    words = set(re.findall(r"[a-z0-9_]+", " ".join(re.findall(r"`([^`\n]+)`", PAGE))))

    assert set(specs(cls)) - words == set()


def test_every_value_of_an_enum_is_on_the_page():
    enums = {spec.type for cls in messages() for spec in specs(cls).values() if spec.is_enum} - {DataType}
    values = {value.name for enum in enums for value in enum} - {"FORMAT_NONE"}

    assert {value for value in values if value not in PAGE} == set()


def test_the_example_is_valid():
    example = re.search(r"```pbtxt\n(name: .*?)```", PAGE, re.DOTALL).group(1)

    assert problems(parse_text(example)) == ()


def test_the_messages_on_the_page_are_those_of_the_code():
    text = '\n\nmax_batchsize: 2\nmax_batch_size: 32\nname: "images" backend: "b"\n'
    with pytest.raises(ConfigError) as caught:
        parse_text(text, "models/images/config.pbtxt")
    sizes = parse_text(
        'name: "images" backend: "b" max_batch_size: 32 dynamic_batching { preferred_batch_size: [ 8, 64 ] }'
    )

    (message,) = problems(sizes)

    assert str(caught.value) in PAGE
    assert str(message) in PAGE
