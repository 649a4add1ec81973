"""Fuzzer of the gRPC frontend: 20,000 seeded messages and streams and 2,000 connections of broken HTTP/2 frames."""

import contextlib
import time
from collections.abc import Sequence
from functools import partial
from random import Random

import grpc

from bench.torture.case import Bounds, Case, Figure
from bench.torture.fuzzer import CASES_OF_FUZZER, LOG_KB, SECONDS, SEED, Findings, run_clients
from bench.torture.grpc_cases import channel_to
from bench.torture.http2 import PREFACE, call_fields, frame, message
from bench.torture.mutations import ODD_NUMBERS, ODD_TEXTS, mutate_bytes
from bench.torture.server import Setup, Target
from bench.torture.wire import connect
from naiad_grpc.messages import message_class

CONNECTIONS = 2_000
_CLIENTS = 8
_HANGS_AFTER = 10.0
_SERVICE = "/inference.GRPCInferenceService/"
_METHODS = (
    *("ServerLive", "ServerReady", "ModelReady", "ServerMetadata", "ModelMetadata", "ModelConfig", "ModelStatistics"),
    *("RepositoryIndex", "SystemSharedMemoryStatus", "SystemSharedMemoryRegister", "CudaSharedMemoryRegister"),
)
_DATATYPES = ("FP32", "BYTES", "INT32", "BOOL", "FP16", "BF16", "", "x", "fp32")
_WRONG = ("INTERNAL", "UNKNOWN", "DEADLINE_EXCEEDED", "DATA_LOSS")


def fuzz(target: Target) -> Sequence[Figure]:
    """All cases, by eight clients at once, each with random numbers of its own; then the broken connections."""
    _message(Random())  # builds the message classes before there are threads
    before = target.descriptors()
    findings = run_clients(_CLIENTS, partial(_client, target))
    _break_connections(target, Random(SEED), time.monotonic() + 15)
    return findings.figures(target, "wrong codes", before)


def _client(target: Target, random: Random, until: float, findings: Findings) -> None:
    with channel_to(target) as channel:
        for _ in range(CASES_OF_FUZZER // _CLIENTS):
            if time.monotonic() > until or not target.alive():
                return
            content = _message(random)
            try:
                code = _send(channel, random, content)
            except grpc.RpcError as error:
                code = error.code().name  # type: ignore[attr-defined]
                if code in _WRONG:
                    findings.wrong.append(f"{code}: {error.details()!r} for {content[:200]!r}")  # type: ignore[attr-defined]
            findings.seen[code] += 1


def _send(channel: grpc.Channel, random: Random, content: bytes) -> str:
    """One call with this message, on a stream with others, or of another method; "OK" where it went well."""
    kind = random.random()
    if kind < 0.25:
        rest = [_message(random) for _ in range(random.randrange(4))]
        answers = channel.stream_stream(_SERVICE + "ModelStreamInfer")(iter([content, *rest]), timeout=_HANGS_AFTER)
        for _answer in answers:
            pass
    elif kind < 0.35:
        channel.unary_unary(_SERVICE + random.choice(_METHODS))(content, timeout=_HANGS_AFTER)
    else:
        channel.unary_unary(_SERVICE + "ModelInfer")(content, timeout=_HANGS_AFTER)
    return "OK"


def _message(random: Random) -> bytes:
    """A ModelInferRequest with odd members; a third of them with changed bytes besides."""
    built = message_class("ModelInferRequest")(
        model_name=random.choice(("identity", "identity", "strings", "events", "missing", "", "x" * 3000)),
        model_version=random.choice(("", "", "1", "2", "x", "-1")),
        id=random.choice(("", "7", "x" * 5000)),
    )
    for _ in range(random.choice((0, 1, 1, 1, 2))):
        shape = [min(max(random.choice((1, 3, *ODD_NUMBERS)), -(1 << 63)), (1 << 63) - 1)] * random.choice(
            (0, 1, 1, 2, 9)
        )
        name, datatype = random.choice(("INPUT0", "text", "COUNT", "", "x")), random.choice(_DATATYPES)
        tensor = built.inputs.add(name=name, datatype=datatype, shape=shape)
        if random.random() < 0.3:
            tensor.contents.fp32_contents.extend([1.0] * random.randrange(5))
            tensor.contents.bytes_contents.extend([b"a"] * random.randrange(3))
        if random.random() < 0.2:
            tensor.parameters["shared_memory_region"].string_param = random.choice(ODD_TEXTS)
    for _ in range(random.choice((0, 1, 1, 2))):
        built.raw_input_contents.append(random.choice((b"", bytes(12), b"\x01\x00\x00\x00a", random.randbytes(99))))
    if random.random() < 0.3:
        output = built.outputs.add(name=random.choice(("OUTPUT0", "count", "x")))
        output.parameters["classification"].int64_param = random.choice((0, 1, -1, 1 << 40))
    if random.random() < 0.3:
        key = random.choice(("sequence_id", "priority", "timeout", "binary_data_output", "triton_x", "x"))
        built.parameters[key].int64_param = random.choice((0, 1, -1, (1 << 63) - 1))
    content = bytes(built.SerializeToString())
    return mutate_bytes(random, content) if random.random() < 0.3 else content


def _break_connections(target: Target, random: Random, until: float) -> None:
    """Connections with frames of random kinds, flags and lengths, or with no preface at all."""
    block = call_fields(_SERVICE + "ModelInfer")
    for _ in range(CONNECTIONS):
        if time.monotonic() > until or not target.alive():
            return
        parts = [PREFACE + frame(4, 0, 0)] if random.random() < 0.9 else []
        for _ in range(random.randrange(1, 8)):
            content = random.choice((b"", block, message(bytes(20)), random.randbytes(random.randrange(200)), bytes(8)))
            built = frame(random.randrange(12), random.randrange(256), random.choice((0, 1, 3, 2, 1 << 30)), content)
            parts.append(built if random.random() < 0.7 else mutate_bytes(random, built))
        with contextlib.suppress(OSError), connect(target.ports.grpc, 0.02) as connection:
            connection.sendall(b"".join(parts))
            connection.recv(65536)


_SETUP = Setup(models=("add_sub", "identity", "strings", "events"), options=("--allow-client-shm=true",))

CASES = (Case("fuzz-grpc", fuzz, Bounds(kept=60, peak=120, wait=3, log=LOG_KB), _SETUP, seconds=SECONDS + 45),)
