"""Validation of a complete configuration against the model file: every mismatch, with both sides named. Pure."""

from collections.abc import Iterator, Mapping, Sequence

from naiad.errors import Problem
from naiad_config import ModelConfig
from naiad_kit.backends.interface.claims import Claim, input_claims, output_claims
from naiad_kit.backends.interface.states import contradictory_states
from naiad_kit.backends.interface.tensors import Interface, ModelTensor, shape_text
from naiad_kit.backends.interface.written import reserved_inputs


def mismatches(config: ModelConfig, interface: Interface) -> tuple[Problem, ...]:
    """Everything in which the configuration and the model contradict each other; () when it can be served."""
    return tuple(_Comparison(config, interface).problems())


class _Comparison:
    """One configuration beside one model."""

    def __init__(self, config: ModelConfig, interface: Interface) -> None:
        self._config = config
        self._interface = interface
        self._inputs = {tensor.name: tensor for tensor in interface.inputs}
        self._outputs = {tensor.name: tensor for tensor in interface.outputs}

    def problems(self) -> Iterator[Problem]:
        yield from self._count()
        for claim in input_claims(self._config):
            yield from self._check(claim, self._inputs)
        for claim in output_claims(self._config):
            yield from self._check(claim, self._outputs)
        yield from contradictory_states(self._config, self._inputs, self._outputs)
        yield from self._optional()

    def _count(self) -> Iterator[Problem]:
        """The model must get every input that it cannot do without."""
        names = {entry.name for entry in self._config.input} | reserved_inputs(self._config)
        required = [tensor.name for tensor in self._interface.inputs if not tensor.optional]
        missing = [name for name in required if name not in names]
        if missing:
            yield Problem(
                f"unable to load model '{self._config.name}', configuration expects {len(names)} inputs, model "
                f"provides {len(required)}: not configured is {_quoted(missing)}",
                "input",
                hint="add what is missing, or leave the inputs out to have them filled from the model",
            )

    def _check(self, claim: Claim, tensors: Mapping[str, ModelTensor]) -> Iterator[Problem]:
        tensor = tensors.get(claim.name)
        if tensor is None:
            allowed = f"allowed {claim.kind}s are: {', '.join(tensors)}"
            start = f"state '{claim.name}' is not a valid state name: " if claim.is_state else ""
            yield Problem(f"{start}unexpected inference {claim.kind} '{claim.name}', {allowed}", claim.path)
            return
        yield from self._type_problem(claim, tensor)
        yield from self._shape_problem(claim, tensor)

    def _type_problem(self, claim: Claim, tensor: ModelTensor) -> Iterator[Problem]:
        if tensor.data_type is claim.data_type:
            return
        start = f"unable to load model '{self._config.name}', "
        if tensor.data_type is None:
            yield Problem(
                f"{start}{claim.kind} '{claim.name}' of the model is {tensor.type}, for which there is no datatype",
                claim.path,
                hint=tensor.hint or f"export the model with another type for this {claim.kind}",
            )
            return
        yield Problem(
            f"{start}configuration expects datatype {claim.data_type.name} for {claim.kind} '{claim.name}', model "
            f"provides {tensor.data_type.name}",
            claim.type_path,
        )

    def _shape_problem(self, claim: Claim, tensor: ModelTensor) -> Iterator[Problem]:
        # An empty shape is a scalar or a shape that the file leaves open; both show themselves when the model runs.
        if not tensor.shape:
            return
        if claim.whole is not None:
            yield from self._whole_problem(claim, claim.whole, tensor)
            return
        start = f"model '{self._config.name}', tensor '{claim.name}': the model expects "
        batching = self._config.max_batch_size > 0
        if batching and tensor.shape[0] != -1:
            yield Problem(
                f"{start}shape {shape_text(tensor.shape)}, and for the model to support batching the first dimension "
                "must be variable",
                claim.path,
                hint="set max_batch_size to 0, or export the model with a variable first dimension",
            )
            return
        whole = (-1, *claim.dims) if batching else claim.dims
        if len(whole) != len(tensor.shape):
            yield Problem(
                f"{start}{len(tensor.shape)} dimensions (shape {shape_text(tensor.shape)}) but the model configuration "
                f"specifies {len(whole)} dimensions ({_how_made(claim.dims, whole, batching)})",
                claim.dims_path,
                hint=_rank_hint(tensor, claim.dims, batching),
            )
            return
        dims = tensor.shape[1:] if batching else tensor.shape
        if not _compatible(dims, claim.dims, claim.exact):
            yield Problem(
                f"{start}dims {shape_text(dims)} but the model configuration specifies dims {shape_text(claim.dims)}",
                claim.dims_path,
            )

    def _whole_problem(self, claim: Claim, whole: tuple[int, ...], tensor: ModelTensor) -> Iterator[Problem]:
        fits = len(whole) == len(tensor.shape) and tensor.shape[0] == -1 and _compatible(tensor.shape, whole, False)
        if whole and not fits:
            yield Problem(
                f"model '{self._config.name}', tensor '{claim.name}': the model expects shape "
                f"{shape_text(tensor.shape)} but gets {shape_text(whole)}: it tells of a whole batch, or holds the "
                "elements of all its requests one after the other",
                claim.path,
                hint=f"export the model with the shape {shape_text(whole)} for it",
            )

    def _optional(self) -> Iterator[Problem]:
        for index, entry in enumerate(self._config.input):
            tensor = self._inputs.get(entry.name)
            path = f"input[{index}].optional"
            if tensor is None or not entry.optional:
                continue
            if not tensor.optional:
                yield Problem(
                    f"input '{entry.name}' is optional in the configuration, but model '{self._config.name}' has no "
                    "default for it",
                    path,
                    hint="remove 'optional', or give the model a default for that input",
                )
            elif self._config.max_batch_size > 0:
                yield Problem(
                    f"optional inputs are for models that do not batch: input '{entry.name}' of model "
                    f"'{self._config.name}' is optional and max_batch_size is {self._config.max_batch_size}",
                    path,
                    hint="set max_batch_size to 0, or remove the input",
                )


def _compatible(model: Sequence[int], written: Sequence[int], exact: bool) -> bool:
    return all(one == other or (not exact and -1 in (one, other)) for one, other in zip(model, written, strict=True))


def _how_made(dims: tuple[int, ...], whole: tuple[int, ...], batching: bool) -> str:
    if not batching:
        return f"shape {shape_text(dims)}"
    return (
        "an initial batch dimension because max_batch_size > 0 followed by the explicit tensor shape, making complete "
        f"shape {shape_text(whole)}"
    )


def _rank_hint(tensor: ModelTensor, written: tuple[int, ...], batching: bool) -> str:
    dims = tensor.shape[1:] if batching else tensor.shape
    if not dims:
        return "write dims: [ 1 ] and reshape { shape: [ ] }"
    without_batch = not batching and tensor.shape[0] == -1 and len(written) == len(dims) - 1
    return f"write dims: {shape_text(dims)}" + (", or set max_batch_size" if without_batch else "")


def _quoted(names: Sequence[str]) -> str:
    return ", ".join(f"'{name}'" for name in names)
