"""What a function that yields is read to give, and what is said where its annotation tells something else."""

from collections.abc import Iterator

import pytest

from naiad.errors import ConfigError
from naiad_config import DataType, ModelOutput, ModelTransactionPolicy
from naiad_custom import FP32, Array, model
from naiad_custom.native import ModelDefinition


@pytest.mark.parametrize(
    ("definition", "annotation"),
    [
        ("def", "Iterator[Array[FP32, 4]]"),
        ("def", "Iterable[Array[FP32, 4]]"),
        ("def", "Generator[Array[FP32, 4], None, None]"),
        ("def", "typing.Iterator[Array[FP32, 4]]"),
        ("def", "'Iterator[Array[FP32, 4]]'"),
        ("async def", "AsyncIterator[Array[FP32, 4]]"),
        ("async def", "AsyncIterable[Array[FP32, 4]]"),
        ("async def", "AsyncGenerator[Array[FP32, 4], None]"),
    ],
)
def test_a_function_that_yields_is_read_by_what_it_yields(folder, definition, annotation):
    folder.write(f"""
        import typing
        from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Generator, Iterable, Iterator
        from naiad_custom import FP32, Array, model

        @model(max_batch_size=4, outputs="b")
        {definition} stream(a: Array[FP32, 4]) -> {annotation}:
            yield a
    """)

    config = folder.completed()

    assert config.output == (ModelOutput(name="b", data_type=DataType.TYPE_FP32, dims=(4,)),)
    assert config.model_transaction_policy == ModelTransactionPolicy(decoupled=True)
    assert (config.max_batch_size, config.dynamic_batching) == (4, None)


def test_what_is_yielded_may_be_named_in_position(folder):
    folder.write("""
        from collections.abc import Iterator
        from naiad_custom import FP32, Array, model

        @model
        def stream(a: Array[FP32, 4]) -> Iterator[{"b": Array[FP32, 4], "c": Array[FP32, 4]}]:
            yield {"b": a, "c": a}
    """)

    assert [each.name for each in folder.completed().output] == ["b", "c"]


@pytest.mark.parametrize(
    ("definition", "message"),
    [
        ("def f(a: Array[FP32, 4]):", r"it does not say .*write -> Iterator\[Array\[FP32, 16\]\] before"),
        ("async def f(a: Array[FP32, 4]):", r"write -> AsyncIterator\[Array\[FP32, 16\]\] before"),
        ("def f(a: Array[FP32, 4]) -> Array[FP32, 4]:", r"it yields, .*write -> Iterator\[Array\[FP32, 16\]\], with"),
        ("async def f(a: Array[FP32, 4]) -> Iterator[Array[FP32, 4]]:", r"it yields, .*write -> AsyncIterator\["),
        ("def f(a: Array[FP32, 4]) -> Iterator:", r"output 'output' says neither datatype nor dims"),
        ("def f(a: Array[FP32, 4]) -> typing.Iterator:", r"output 'output' says neither datatype nor dims"),
    ],
)
def test_an_annotation_that_does_not_fit_what_is_yielded_says_what_to_write(folder, definition, message):
    folder.write(f"""
        import typing
        from collections.abc import Iterator
        from naiad_custom import FP32, Array, model

        @model
        {definition}
            yield a
    """)

    with pytest.raises(ConfigError, match=rf"model\.py:6:\d+: the answer of 'f': .*{message}"):
        folder.completed()


def test_an_async_function_that_returns_an_iterator_is_reported_to_yield():
    @model
    async def wrapped(a: Array[FP32, 4]) -> Iterator[Array[FP32, 4]]:
        return iter([a])

    with pytest.raises(ConfigError, match=r"only when it is awaited \(write -> AsyncIterator\[.* and yield each"):
        ModelDefinition(wrapped)
