"""Models written as a marked function or class: from a batch to the function's arguments, and from its result back."""

import inspect
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from naiad.backend import Answer, Batch, Instance, ModelContext, Placement
from naiad.datatypes import bf16_to_fp32, fp32_to_bf16
from naiad.errors import ModelFailedError, NaiadError
from naiad.types import Request
from naiad_custom.api import MARK, Declaration
from naiad_custom.asynchronous import AsyncInstance
from naiad_custom.ownership import are_fresh, settle
from naiad_custom.signature import Signature, read_signature


class Marked:
    """A function or class that `@model` marked, with its signature.

    Raises ConfigError for annotations that do not tell what the model takes and gives.
    """

    def __init__(self, target: Callable[..., Any]) -> None:
        self.target = target
        self.declaration: Declaration = vars(target)[MARK]
        self.is_class = inspect.isclass(target)
        function = _execute_of(target) if inspect.isclass(target) else target
        self.signature = read_signature(function, self.declaration, self.is_class)
        self.is_async = inspect.iscoroutinefunction(inspect.unwrap(function))


class MarkedModel:
    """One loaded version of a marked function or class; a class is made once an instance."""

    def __init__(
        self,
        marked: Marked,
        context: ModelContext,
        on_close: Callable[[], None] = lambda: None,
        place: Callable[[BaseException], str] = lambda error: "",
    ) -> None:
        self._marked = marked
        self._context = context
        self._on_close = on_close
        self._place = place
        self._convert = Conversion(marked.signature)

    def instantiate(self, placement: Placement) -> Instance:
        """Make and load the object there. Raises ModelFailedError with file, line and what the user's load raised."""
        try:
            return self._instantiated(placement)
        except NaiadError:
            raise
        except Exception as error:
            told = f"{self._place(error)}: loading the model failed: {type(error).__name__}: {error}"
            raise ModelFailedError(told) from error

    def _instantiated(self, placement: Placement) -> Instance:
        marked = self._marked
        subject = Subject(marked.target() if marked.is_class else marked.target, marked.is_class)
        if not marked.is_async:
            subject.load(self._context, placement)
            return MarkedInstance(subject, self._convert)
        instance = AsyncInstance(subject, self._convert, marked.declaration.concurrency)
        try:
            instance.wait_for(lambda: subject.load(self._context, placement))
        except BaseException:
            instance.abandon()
            raise
        return instance

    def close(self) -> None:
        """Forget the model's modules."""
        self._on_close()


class Subject:
    """The user's side of an instance: what to call, and the optional load, ready and close of a class."""

    def __init__(self, target: Any, is_object: bool) -> None:
        self.call: Callable[..., Any] = target.execute if is_object else target
        self._target = target if is_object else None

    def load(self, context: ModelContext, placement: Placement) -> Any:
        """Call `load(context)` or `load(context, placement)`."""
        load = getattr(self._target, "load", None)
        if load is None:
            return None
        return load(*(context, placement)[: len(inspect.signature(load).parameters)])

    def ready(self) -> str:
        """Why it is not ready, "" when it is; `ready` may also answer with True or False."""
        ready = getattr(self._target, "ready", None)
        answer = True if ready is None else ready()
        if isinstance(answer, bool):
            return "" if answer else "ready() answered False"
        return str(answer or "")

    def close(self) -> Any:
        """Call `close()`."""
        close = getattr(self._target, "close", None)
        return None if close is None else close()


class MarkedInstance:
    """One copy of a plain function or object: a batch in, one call, its arrays out."""

    def __init__(self, subject: Subject, convert: "Conversion") -> None:
        self._subject = subject
        self._call = subject.call
        self._convert = convert

    def execute(self, batch: Batch) -> Answer:
        """Call the function with the whole batch."""
        arguments = self._convert.arguments(batch)
        return self._convert.outputs(self._call(**arguments), arguments)

    def ready(self) -> str:
        """Why the user's object is not ready, "" when it is."""
        return self._subject.ready()

    def close(self) -> None:
        """Close the user's object."""
        self._subject.close()


class Conversion:
    """Between a batch and the arguments and result of a function.

    Arrays go in read-only, because a batch of one is the received request itself; BF16 is float32 on both sides.
    """

    def __init__(self, signature: Signature) -> None:
        self._function = signature.function
        self._form = signature.form
        self._required = [each.name for each in signature.arguments if not each.optional]
        self._optional = [each.name for each in signature.arguments if each.optional]
        self._requests = [name for name, kind in signature.specials.items() if kind is Request]
        self._batches = [name for name, kind in signature.specials.items() if kind is Batch]
        self._bf16_inputs = frozenset(each.name for each in signature.arguments if each.spec.datatype == "BF16")
        self._names = [each.name for each in signature.results]
        self._bf16_outputs = frozenset(each.name for each in signature.results if each.spec.datatype == "BF16")

    def arguments(self, batch: Batch) -> dict[str, Any]:
        """Keyword arguments for the function; an optional input that the requests left out is left to its default."""
        arguments: dict[str, Any] = {name: self._array(batch, name) for name in self._required}
        for name in self._optional:
            if name in batch.requests[0].inputs:
                arguments[name] = self._array(batch, name)
        for name in self._requests:
            arguments[name] = batch.requests[0]
        for name in self._batches:
            arguments[name] = batch
        return arguments

    def outputs(self, result: Any, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """One array an output. Raises ModelFailedError when the result has another form than the annotation says."""
        outputs = self._taken(result)
        del result  # a reference less, so that a fresh array is known to be fresh
        for name in self._bf16_outputs:
            outputs[name] = fp32_to_bf16(np.asarray(outputs[name], dtype=np.float32))
        if not are_fresh(outputs):
            settle(outputs, arguments.values())
        return outputs

    def _array(self, batch: Batch, name: str) -> np.ndarray:
        array = batch.input(name)
        if name in self._bf16_inputs:
            array = bf16_to_fp32(array)
        if array.flags.writeable:
            array = array.view()
            array.flags.writeable = False
        return array

    def _taken(self, result: Any) -> dict[str, Any]:
        if self._form == "one":
            found = {self._names[0]: result}
        elif self._form == "tuple" and isinstance(result, tuple) and len(result) == len(self._names):
            found = dict(zip(self._names, result, strict=True))
        elif self._form == "mapping" and isinstance(result, Mapping):
            found = dict(result)
        elif self._form == "attributes":
            found = {name: getattr(result, name, None) for name in self._names}
        else:
            found = {}
        wrong = [name for name in self._names if found.get(name) is None or isinstance(found[name], Mapping)]
        if wrong:
            raise ModelFailedError(
                f"'{self._function}' returned {_shown(result)}, which has no array for output '{wrong[0]}'; "
                f"return {self._wanted()}"
            )
        return found

    def _wanted(self) -> str:
        names = ", ".join(self._names)
        form = {"tuple": "a tuple of", "mapping": "a dict with", "attributes": "an object with"}.get(self._form)
        return f"{form} {names}" if form else "one array"


def _execute_of(target: type) -> Callable[..., Any]:
    execute: Callable[..., Any] | None = getattr(target, "execute", None)
    if execute is None:
        raise TypeError(f"class '{target.__qualname__}' has no method execute; write def execute(self, ...)")
    return execute


def _shown(result: Any) -> str:
    if isinstance(result, tuple):
        return f"a tuple of {len(result)}"
    if isinstance(result, Mapping):
        return f"a dict with {', '.join(map(str, result)) or 'nothing'}"
    return "None" if result is None else f"a {type(result).__name__}"
