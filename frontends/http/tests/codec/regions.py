"""Shared memory of tests, and requests that name it."""

import numpy as np
import orjson

from naiad.errors import InvalidArgumentError, NotFoundError
from naiad_http.codec import Decoder
from naiad_http.codec.request_head import RequestHead
from naiad_shared_memory.regions import SharedMemory


class FakeRegion:
    """A region whose memory is a bytearray; like a real one it refuses what lies outside."""

    def __init__(self, name, content):
        self.name = name
        self.memory = bytearray(content)

    def check(self, offset, byte_size):
        if offset + byte_size > len(self.memory):
            raise InvalidArgumentError(f"outside of '{self.name}'")

    def read(self, offset, byte_size):
        self.check(offset, byte_size)
        return np.array(self.memory[offset : offset + byte_size], np.uint8)

    def write(self, offset, byte_size, content, output):
        if len(content) > byte_size:
            raise InvalidArgumentError(f"'{output}' needs {len(content)} bytes")
        self.memory[offset : offset + len(content)] = content


class Regions(SharedMemory):
    """The regions of a server by their names, and a decoder over them."""

    def __init__(self):
        super().__init__(allowed=True)
        self.by_name = {}
        self.decoder = Decoder(1 << 20, lambda *_: None, lambda: self)

    def put(self, name, content):
        self.by_name[name] = FakeRegion(name, content)
        return self.by_name[name]

    def region(self, name):
        if name not in self.by_name:
            raise NotFoundError(f"Unable to find shared memory region: '{name}'")
        return self.by_name[name]

    def decode(self, document, content=None):
        text = orjson.dumps(document)
        length = None if content is None else len(text)
        return self.decoder.decode(RequestHead("m", header_length=length), text, content or b"")


def location(region="r", byte_size=None, offset=None):
    members = {"region": region, "byte_size": byte_size, "offset": offset}
    return {f"shared_memory_{key}": value for key, value in members.items() if value is not None}


def tensor(name="X", datatype="FP32", shape=(2,), parameters=None, **members):
    fields = {"name": name, "datatype": datatype, "shape": list(shape), **members}
    return fields if parameters is None else {**fields, "parameters": parameters}


def output(name="Y", **parameters):
    return {"name": name, "parameters": parameters}
