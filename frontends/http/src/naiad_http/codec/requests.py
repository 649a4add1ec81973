"""The body of an infer request to a Request; tensors are views on the received bytes, or copies of shared memory."""

from collections.abc import Callable

import numpy as np

from naiad.config import ModelConfig
from naiad.errors import InvalidArgumentError
from naiad.protocol.buffers import Buffer, bool_array, unpack_strings
from naiad.shared_memory import Region
from naiad.transfers import Place, transfer_of
from naiad.types import Request, Tensor
from naiad_http.codec.envelope import Envelope
from naiad_http.codec.forms import AnswerForm, OutputForm
from naiad_http.codec.inputs import BinaryInput
from naiad_http.codec.raw import raw_request
from naiad_http.codec.remembered import LONGEST, Found, Remembered
from naiad_http.codec.skeletons import Skeleton, read_skeleton


class Decoder:
    """Decodes the bodies of infer requests.

    Clients send the same JSON in front of ever new bytes, or about the same place in shared memory, so its skeleton is
    remembered by its text (without ids), which saves two thirds of the time of a small request. JSON that carries
    tensors is not remembered.
    """

    def __init__(
        self, max_input_size: int, model_config: Callable[[str, int], ModelConfig], region: Callable[[str], Region]
    ) -> None:
        """`region` finds a shared memory region by its name; `model_config` is asked for raw requests only."""
        self._limit = max_input_size
        self._model_config = model_config
        self._region = region
        self._skeletons = Remembered(lambda text, model: read_skeleton(text, model, max_input_size))

    def decode(self, envelope: Envelope, front: Buffer, rest: Buffer) -> tuple[Request, AnswerForm]:
        """The request that the body holds and the form of the answer that it wants.

        `front` is the JSON part (`bytes`, but the whole body without a header length), `rest` the bytes behind it.
        Raises InvalidArgumentError, or what `model_config` and `region` raise.
        """
        length = envelope.header_length
        if length is None:
            skeleton, request_id, correlation_id = self._whole_body(front, envelope.model_name)
        elif length == 0:
            return raw_request(envelope, self._model_config(envelope.model_name, envelope.version), rest)
        elif length != len(front):
            total = len(front) + len(rest)
            raise InvalidArgumentError(f"inference header size should be in range (0, {total}), got: {length}")
        else:
            skeleton, request_id, correlation_id = self._skeletons.find(bytes(front), envelope.model_name)
        if skeleton.size != len(rest):
            raise _wrong_size(skeleton, len(rest), envelope.model_name)
        inputs = self._inputs(skeleton, rest, envelope.model_name)
        form = self._form(skeleton) if skeleton.placed else skeleton.form
        request = _request(envelope, skeleton, request_id, correlation_id, inputs)
        if skeleton.placed or skeleton.shared:
            request.transfer = transfer_of(inputs, {name: each.place for name, each in form.outputs.items()})
        return request, form

    def _whole_body(self, body: Buffer, model: str) -> Found:
        """What a body that is all JSON says; one that names shared memory is as good as a short front."""
        short = bytes(body) if len(body) <= LONGEST else b""
        if b'"shared_memory_region"' in short:
            return self._skeletons.find(short, model)
        skeleton = read_skeleton(body, model, self._limit)
        return skeleton, skeleton.id, skeleton.parameters.correlation_id

    def _inputs(self, skeleton: Skeleton, rest: Buffer, model: str) -> dict[str, Tensor]:
        """All inputs of the skeleton, the binary ones over `rest`, the shared ones as they are in their regions now."""
        inputs = skeleton.tensors
        if skeleton.binary:
            inputs = _with_binary(skeleton, rest, model)
        if skeleton.shared:
            found = inputs
            inputs = found.copy()
            for each in skeleton.shared:
                inputs[each.name] = each.tensor(self._region(each.region), model)
            if found:
                return {name: inputs[name] for name in skeleton.names}
        return inputs

    def _form(self, skeleton: Skeleton) -> AnswerForm:
        """The form of the answer, with the regions as they are now; the outputs must lie within them."""
        forms = dict(skeleton.form.outputs)
        for name, called, offset, byte_size in skeleton.placed:
            forms[name] = OutputForm(place=Place(self._region(called), offset, byte_size))
        return AnswerForm(skeleton.form.unlisted, forms)


def _request(
    envelope: Envelope, skeleton: Skeleton, request_id: str, correlation_id: int | str, inputs: dict[str, Tensor]
) -> Request:
    parameters = skeleton.parameters
    own = parameters.own
    if envelope.forwarded:  # a gateway's word counts more than the caller's
        own = {**own, **envelope.forwarded}
    return Request(
        envelope.model_name,
        inputs,
        envelope.version,
        request_id,
        skeleton.requested,
        own,
        parameters.priority,
        parameters.timeout_microseconds,
        None,
        correlation_id,
        parameters.sequence_start,
        parameters.sequence_end,
    )


def _with_binary(skeleton: Skeleton, rest: Buffer, model: str) -> dict[str, Tensor]:
    """The inputs that came as JSON and those that lie in `rest`."""
    inputs = skeleton.tensors.copy()
    for each in skeleton.binary:
        name, datatype, shape, dtype, _elements, start, _size, is_view = each
        array = np.ndarray(shape, dtype, rest, start) if is_view else _array(each, rest, start, model)
        inputs[name] = Tensor(name, datatype, shape, array)
    return {name: inputs[name] for name in skeleton.names if name in inputs} if skeleton.tensors else inputs


def _array(given: BinaryInput, content: Buffer, start: int, model: str) -> np.ndarray:
    """The array of an input that is not simply a view; frameworks may not read numbers that are not aligned."""
    if given.datatype == "BYTES":
        elements = unpack_strings(content[start : start + given.size], given.elements, given.name, model)
        return elements.reshape(given.shape)
    if given.datatype == "BOOL":
        return bool_array(given.shape, content, start)
    return np.ndarray(given.shape, given.dtype, content, start).copy()


def _wrong_size(skeleton: Skeleton, got: int, model: str) -> InvalidArgumentError:
    if got > skeleton.size:
        return InvalidArgumentError(
            f"unexpected additional input data for model '{model}': the inputs take {skeleton.size} bytes behind the "
            f"JSON, the body has {got}"
        )
    short = next(each for each in skeleton.binary if each.start + each.size > got)
    return InvalidArgumentError(
        f"unexpected size for input '{short.name}', expecting {short.start + short.size - got} additional bytes for "
        f"model '{model}'"
    )
