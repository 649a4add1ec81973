"""What several tests of the codec share: regions of memory that no client shares, and requests as messages."""

import numpy as np
import pytest

from naiad.errors import InvalidArgumentError, NotFoundError
from naiad_grpc.codec import Decoder
from naiad_grpc.messages import message_class
from naiad_shared_memory.regions import SharedMemory


class FakeRegion:
    """A region over bytes of the test's own; it says what was asked of it."""

    def __init__(self, name, content=b""):
        self.name = name
        self.content = bytearray(content)

    def check(self, offset, byte_size):
        if offset + byte_size > len(self.content):
            raise InvalidArgumentError(f"Invalid offset + byte size for shared memory region: '{self.name}'")

    def read(self, offset, byte_size):
        self.check(offset, byte_size)
        return np.frombuffer(bytes(self.content[offset : offset + byte_size]), np.uint8)

    def write(self, offset, byte_size, content, output):
        written = bytes(content)
        if len(written) > byte_size:
            raise InvalidArgumentError(f"shared memory size specified with the request for output '{output}'")
        self.content[offset : offset + len(written)] = written


class FakeRegions(SharedMemory):
    """Regions by name."""

    def __init__(self):
        super().__init__(allowed=True)
        self.by_name = {}

    def region(self, name):
        try:
            return self.by_name[name]
        except KeyError:
            raise NotFoundError(f"Unable to find shared memory region: '{name}'") from None

    def add(self, name, content=b""):
        self.by_name[name] = FakeRegion(name, content)
        return self.by_name[name]


@pytest.fixture
def regions():
    return FakeRegions()


@pytest.fixture
def decoder(regions):
    return Decoder(lambda: regions)


@pytest.fixture
def ask():
    """Makes a ModelInferRequest; inputs are (name, datatype, shape), or with a dict of more members."""

    def make(*inputs, raw=(), model="m", **members):
        message = message_class("ModelInferRequest")(model_name=model, raw_input_contents=raw, **members)
        for name, datatype, shape, *more in inputs:
            message.inputs.add(name=name, datatype=datatype, shape=shape, **(more[0] if more else {}))
        return message

    return make


@pytest.fixture
def decode(decoder):
    """Decodes a message object twice, as a request that is new and as one that is expected."""

    def both(message):
        first = decoder.decode(message.SerializeToString())
        decoder.decode(message.SerializeToString())
        return first

    return both
