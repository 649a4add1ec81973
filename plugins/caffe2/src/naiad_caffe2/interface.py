"""Interface of a net: inputs from the model's configuration, outputs from the translation to ONNX.

A net does not know the datatypes and dims of its inputs: they stand in the configuration, and everything else follows.
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from naiad.errors import ConfigError, Problem
from naiad_caffe2.files import Nets
from naiad_caffe2.net import GivenInput, Translated, TranslatedOutput, inputs_of
from naiad_config import DataType, ModelConfig
from naiad_kit.backends.interface import Claim, Interface, ModelTensor, input_claims

ELEMENT_TYPES: Mapping[DataType, int] = MappingProxyType(
    {
        DataType.TYPE_FP32: 1,
        DataType.TYPE_UINT8: 2,
        DataType.TYPE_INT8: 3,
        DataType.TYPE_UINT16: 4,
        DataType.TYPE_INT16: 5,
        DataType.TYPE_INT32: 6,
        DataType.TYPE_INT64: 7,
        DataType.TYPE_BOOL: 9,
        DataType.TYPE_FP16: 10,
        DataType.TYPE_FP64: 11,
    }
)
"""The numbers of `onnx.TensorProto` for the datatypes that Caffe2 has too."""

_DATA_TYPES = {number: data_type for data_type, number in ELEMENT_TYPES.items()}


def given_inputs(config: ModelConfig, nets: Nets) -> dict[str, GivenInput]:
    """The inputs of the net, in its order, with what the configuration says of them.

    Raises ConfigError, with what to write, when it says too little, or names what the net does not take.
    """
    claims = {claim.name: claim for claim in input_claims(config)}
    names = inputs_of(nets.net, nets.init, claims)
    problems = [*_unknown(claims, nets, names), *_incomplete(claims, names, config.name)]
    if problems:
        raise ConfigError(problems)
    batching = config.max_batch_size > 0
    return {name: GivenInput(ELEMENT_TYPES[claims[name].data_type], _shape(claims[name], batching)) for name in names}


def interface_of(config: ModelConfig, translated: Translated, inputs: Mapping[str, GivenInput]) -> Interface:
    """Both sides of the net; dims of an output that only a run would show are those of the configuration."""
    written = {entry.name: entry for entry in config.output}
    batch = (-1,) if config.max_batch_size > 0 else ()
    outputs = []
    for name, output in translated.outputs.items():
        entry = written.get(name)
        dims = (entry.reshape.shape if entry.reshape is not None else entry.dims) if entry is not None else ()
        outputs.append(_output(name, output, (*batch, *dims) if dims else ()))
    taken = [
        ModelTensor(name, _type_name(each.element_type), _DATA_TYPES.get(each.element_type), _sizes(each.shape))
        for name, each in inputs.items()
    ]
    return Interface(tuple(taken), tuple(outputs))


def refuse_unknown_dims(config: ModelConfig, interface: Interface) -> None:
    """Raise ConfigError for outputs whose number of dims neither the net nor the configuration says."""
    written = {entry.name for entry in config.output if entry.dims}
    declared = {entry.name for entry in config.output} or {tensor.name for tensor in interface.outputs}
    problems = [
        Problem(
            f"model '{config.name}': the net does not say how many dims its output '{tensor.name}' has",
            "output",
            hint=f'write output {{ name: "{tensor.name}" data_type: … dims: [ … ] }}',
        )
        for tensor in interface.outputs
        if tensor.name in declared - written and (tensor.data_type is None or not tensor.shape)
    ]
    if problems:
        raise ConfigError(problems)


def _unknown(claims: Mapping[str, Claim], nets: Nets, names: Sequence[str]) -> list[Problem]:
    known = ", ".join(f"'{name}'" for name in names if name in nets.net.external_input) or "none"
    return [
        Problem(f"unexpected inference input '{name}', allowed inputs are: {known}, in {nets.path.name}", claim.path)
        for name, claim in claims.items()
        if name not in nets.net.external_input
    ]


def _incomplete(claims: Mapping[str, Claim], names: Sequence[str], model: str) -> list[Problem]:
    problems = []
    for name in names:
        claim = claims.get(name)
        if claim is None or claim.data_type is DataType.TYPE_INVALID or not (claim.dims or claim.whole is not None):
            problems.append(
                Problem(
                    f"model '{model}' takes the input '{name}', and a net of Caffe2 says neither its datatype nor its "
                    "dims",
                    claim.path if claim is not None else "input",
                    hint=f'write input {{ name: "{name}" data_type: TYPE_FP32 dims: [ … ] }}, as the model needs it',
                )
            )
        elif claim.data_type not in ELEMENT_TYPES:
            known = ", ".join(each.name for each in ELEMENT_TYPES)
            message = f"input '{name}' is {claim.data_type.name}, which nets of Caffe2 do not take"
            problems.append(Problem(message, claim.type_path, hint=f"they take {known}"))
    return problems


def _shape(claim: Claim, batching: bool) -> tuple[int | str | None, ...]:
    whole = claim.whole if claim.whole is not None else (*((-1,) if batching else ()), *claim.dims)
    names = ["batch" if batching and not axis and claim.whole is None else f"{claim.name}.{axis}" for axis in range(99)]
    return tuple(size if size >= 0 else name for size, name in zip(whole, names, strict=False))


def _output(name: str, output: TranslatedOutput, written: tuple[int, ...]) -> ModelTensor:
    sizes = _sizes(output.shape) if output.shape is not None else written
    if len(sizes) == len(written):
        sizes = tuple(known if -1 in (known, size) else size for size, known in zip(sizes, written, strict=True))
    return ModelTensor(name, _type_name(output.element_type), _DATA_TYPES.get(output.element_type), sizes)


def _sizes(shape: Sequence[int | str | None]) -> tuple[int, ...]:
    return tuple(size if isinstance(size, int) else -1 for size in shape)


def _type_name(element_type: int) -> str:
    data_type = _DATA_TYPES.get(element_type)
    return data_type.name.removeprefix("TYPE_").lower() if data_type is not None else "of an unknown type"
