"""`pb_utils.MetricFamily`: custom metrics of a model."""

from collections.abc import Callable, Mapping, Sequence
from enum import Enum, IntEnum
from typing import ClassVar, Literal, ParamSpec, TypeVar

from naiad.errors import NaiadError
from naiad_custom.triton.errors import TritonModelException
from naiad_custom.triton.logger import context_of_caller
from naiad_custom.triton.texts import text_of
from naiad_kit import metrics

_P = ParamSpec("_P")
_T = TypeVar("_T")
_KINDS: tuple[Literal["counter", "gauge", "histogram"], ...] = ("counter", "gauge", "histogram")


class MetricKind(IntEnum):
    """What the metrics of a family count."""

    __str__ = Enum.__str__
    COUNTER = 0
    GAUGE = 1
    HISTOGRAM = 2


class MetricFamily:
    """Metrics of one name, one per set of labels. They are removed with this object, or when the model is closed.

    Raises TritonModelException in code outside a model's folder, for a name that cannot be used, and when there is a
    family of that name with another kind; TypeError for arguments of other types.
    """

    COUNTER: ClassVar = MetricKind.COUNTER
    GAUGE: ClassVar = MetricKind.GAUGE
    HISTOGRAM: ClassVar = MetricKind.HISTOGRAM

    __slots__ = ("_family",)

    def __init__(self, name: str | bytes, description: str | bytes, kind: int) -> None:
        name = text_of("the name of a pb_utils.MetricFamily", name)
        description = text_of("the description of a pb_utils.MetricFamily", description)
        if kind not in tuple(MetricKind):
            raise TypeError(f"metric family '{name}' is of no kind {kind!r}; use MetricFamily.COUNTER")
        context = context_of_caller()
        if context is None:
            raise TritonModelException(
                f"metric family '{name}' was made by code outside a model's folder; make it in the model's initialize"
            )
        self._family = _call(context.metrics.family, name, description, _KINDS[kind])

    def Metric(  # noqa: N802 - the name is the interface's
        self, labels: Mapping[str, str] | None = None, buckets: Sequence[float] | None = None
    ) -> "Metric":
        """The metric with these labels; a histogram needs the upper bounds of its buckets."""
        return Metric(_call(self._family.metric, labels, buckets))

    def __del__(self) -> None:
        if hasattr(self, "_family"):
            self._family.close()


class Metric:
    """One metric of a family. Raises TritonModelException for what its kind does not have, and once its family is gone.

    As in Triton it does not keep its family, which the model has to hold.
    """

    __slots__ = ("_metric",)

    def __init__(self, metric: metrics.Metric) -> None:
        self._metric = metric

    def increment(self, value: float) -> None:
        """Add to a counter or gauge; a counter cannot go down."""
        _call(self._metric.increment, _number(value))

    def set(self, value: float) -> None:
        """Make a gauge stand at that value."""
        _call(self._metric.set, _number(value))

    def observe(self, value: float) -> None:
        """Count a value in a histogram."""
        _call(self._metric.observe, _number(value))

    def value(self) -> float:
        """Where a counter or gauge stands."""
        return _call(self._metric.value)

    def __del__(self) -> None:
        self._metric.close()


def _number(value: float) -> float:
    """The value itself, for the registry to convert. Raises TypeError for what is no number."""
    if not hasattr(value, "__float__") and not hasattr(value, "__index__"):
        raise TypeError(f"a metric takes a number, not {type(value).__name__}")
    return value


def _call(ask: Callable[_P, _T], *arguments: _P.args, **named: _P.kwargs) -> _T:
    """What the registry answers; its refusals as the exception that models know."""
    try:
        return ask(*arguments, **named)
    except NaiadError as error:
        raise TritonModelException(str(error)) from error
