"""Shared memory on both protocols: regions that are sound, that are not, and tensors in them."""

from pathlib import Path
from typing import Any

from tritonclient.grpc import service_pb2 as pb

from ..answers import Answer, Case, Ports
from ..grpc_asking import grpc_case
from ..http_asking import Body, http_case
from .grpc_making import RAW, infer_request
from .grpc_making import requested as grpc_wanted
from .grpc_making import tensor as grpc_tensor
from .http_making import A, B, floats, infer, requested, strings, tensor

_KEY = "/naiad_differential"
_FILE = Path("/dev/shm") / _KEY[1:]
_SIZE = 256
_CONTENT = (floats(*range(1, 9)) + strings(b"one", b"two")).ljust(_SIZE, b"\0")
"""INPUT0 at 0, INPUT1 at 16, two texts at 32, and room for answers from 128 on."""


def cases() -> list[Case]:
    """Every case of this page."""
    return [*_registering(), *_inferring(), *_grpc(), *_giving_back(), Case("shm/end", _remove)]


def _remove(_ports: Ports) -> Answer:
    _FILE.unlink(missing_ok=True)
    return Answer("removed")


def _with_memory(case: Case) -> Case:
    """The case with a fresh segment; what is in it afterwards belongs to the answer."""

    def ask(ports: Ports) -> Answer:
        if not _FILE.exists():
            _FILE.write_bytes(_CONTENT)
        with _FILE.open("r+b") as segment:
            segment.write(_CONTENT)
            segment.flush()
            answer = case.ask(ports)
            segment.seek(0)
            return Answer(answer.status, answer.headers, answer.document, answer.content + segment.read())

    return Case(case.key, ask, case.any_value)


def _post(key: str, path: str, body: Body = None) -> Case:
    return _with_memory(http_case(f"shm/{key}", "POST", f"/v2/systemsharedmemory{path}", body))


def _status(key: str, path: str = "") -> Case:
    return http_case(f"shm/{key}", "GET", f"/v2/systemsharedmemory{path}/status")


def _registering() -> list[Case]:
    sound = {"key": _KEY, "offset": 0, "byte_size": _SIZE}
    bodies: dict[str, Body] = {
        "no_key": {"byte_size": _SIZE},
        "no_size": {"key": _KEY},
        "key_number": {"key": 5, "byte_size": _SIZE},
        "key_empty": {"key": "", "byte_size": _SIZE},
        "key_slash": {"key": "/", "byte_size": _SIZE},
        "key_reserved": {"key": "/triton_python_backend_shm_region_x", "byte_size": _SIZE},
        "key_unknown": {"key": "/naiad_differential_nothing", "byte_size": _SIZE},
        "key_path": {"key": "/../etc/passwd", "byte_size": 10},
        "size_text": {"key": _KEY, "byte_size": "256"},
        "size_negative": {"key": _KEY, "byte_size": -1},
        "size_too_large": {"key": _KEY, "byte_size": _SIZE + 1},
        "offset_too_large": {"key": _KEY, "offset": 1, "byte_size": _SIZE},
        "offset_overflows": {"key": _KEY, "offset": 2**64 - 1, "byte_size": 2},
        "offset_negative": {"key": _KEY, "offset": -1, "byte_size": 2},
        "offset_text": {"key": _KEY, "offset": "0", "byte_size": 2},
        "no_json": b"{",
        "nothing": None,
        "list": [],
    }
    results = [_status("none"), _status("unknown", "/region/nothing")]
    results += [_post(f"register_{key}", "/region/odd/register", body) for key, body in bodies.items()]
    return [
        *results,
        _status("none_yet"),
        _post("register", "/region/whole/register", sound),
        _post("register_again", "/region/whole/register", sound),
        _post("register_part", "/region/part/register", {"key": _KEY, "offset": 128, "byte_size": 64}),
        _post("register_without_slash", "/region/bare/register", {"key": _KEY[1:], "byte_size": 16}),
        _post("register_empty", "/region/empty/register", {"key": _KEY, "byte_size": 0}),
        _status("all"),
        _status("one", "/region/whole"),
        http_case("shm/cuda_status", "GET", "/v2/cudasharedmemory/status"),
        http_case("shm/cuda_status_of_system", "GET", "/v2/cudasharedmemory/region/whole/status"),
        http_case("shm/cuda_unregister", "POST", "/v2/cudasharedmemory/unregister"),
    ]


def _at(region: str, size: int, offset: int | None = None) -> dict[str, Any]:
    where = {"shared_memory_region": region, "shared_memory_byte_size": size}
    return where if offset is None else where | {"shared_memory_offset": offset}


def _inputs(size: int = 16, first: int | None = None, second: int = 16, region: str = "whole") -> list[dict[str, Any]]:
    locations = {"INPUT0": _at(region, size, first), "INPUT1": _at(region, 16, second)}
    return [tensor(name, "FP32", [1, 4], **location) for name, location in locations.items()]


def _inferring() -> list[Case]:
    outputs = requested("OUTPUT0", **_at("whole", 16, 128))
    texts = [tensor("IN", "BYTES", [2, 1], **_at("whole", 14, 32))]
    results = {
        "in": infer("shm/in", "add_sub", _inputs()),
        "in_and_json": infer("shm/in_and_json", "add_sub", [_inputs()[0], B]),
        "out": infer("shm/out", "add_sub", [A, B], outputs),
        "out_larger": infer("shm/out_larger", "add_sub", [A, B], requested("OUTPUT0", **_at("whole", 20, 128))),
        "in_and_out": infer("shm/in_and_out", "add_sub", _inputs(), [*outputs, *requested("OUTPUT1")]),
        "texts": infer("shm/texts", "words", texts, requested("OUT", **_at("whole", 100, 128))),
        "texts_too_long": infer("shm/texts_too_long", "words", [tensor("IN", "BYTES", [2, 1], **_at("whole", 15, 32))]),
        "unknown": infer("shm/infer_unknown", "add_sub", _inputs(region="nothing")),
        "out_unknown": infer("shm/infer_out_unknown", "add_sub", [A, B], requested("OUTPUT0", **_at("nothing", 16))),
        "small": infer("shm/size_small", "add_sub", _inputs(size=12)),
        "large": infer("shm/size_large", "add_sub", _inputs(size=20)),
        "beyond": infer("shm/offset_beyond", "add_sub", _inputs(second=250)),
        "far": infer("shm/offset_far", "add_sub", _inputs(second=256)),
        "overflow": infer("shm/offset_overflows", "add_sub", _inputs(second=2**64 - 8)),
        "out_small": infer("shm/out_small", "add_sub", [A, B], requested("OUTPUT0", **_at("whole", 15, 128))),
        "out_beyond": infer("shm/out_beyond", "add_sub", [A, B], requested("OUTPUT0", **_at("whole", 16, 250))),
        "no_size": infer("shm/no_size", "add_sub", [A, tensor("INPUT1", "FP32", [1, 4], shared_memory_region="whole")]),
        "size_text": infer(
            "shm/size_text",
            "add_sub",
            [A, tensor("INPUT1", "FP32", [1, 4], **_at("whole", 16) | {"shared_memory_byte_size": "16"})],
        ),
        "region_number": infer(
            "shm/region_number",
            "add_sub",
            [A, tensor("INPUT1", "FP32", [1, 4], **_at("whole", 16) | {"shared_memory_region": 5})],
        ),
        "and_data": infer("shm/and_data", "add_sub", [A | {"parameters": _at("whole", 16)}, B]),
        "classes": infer(
            "shm/classes", "add_sub", [A, B], requested("OUTPUT0", classification=1, **_at("whole", 64, 128))
        ),
        "binary": infer(
            "shm/out_binary", "add_sub", [A, B], requested("OUTPUT0", binary_data=True, **_at("whole", 16, 128))
        ),
        "default_binary": infer(
            "shm/out_default_binary", "add_sub", [A, B], outputs, parameters={"binary_data_output": True}
        ),
    }
    return [_with_memory(case) for case in results.values()]


def _grpc() -> list[Case]:
    names = ("INPUT0", "INPUT1")
    inputs = [grpc_tensor(name, "FP32", [1, 4], _at("whole", 16, 16 * index)) for index, name in enumerate(names)]
    plain = [grpc_tensor(name, "FP32", [1, 4]) for name in names]
    out = [grpc_wanted("OUTPUT0", **_at("whole", 16, 128))]
    register = pb.SystemSharedMemoryRegisterRequest
    with_contents = grpc_tensor("INPUT1", "FP32", [1, 4], _at("whole", 16), fp32_contents=[1, 2, 3, 4])
    no_size = grpc_tensor("INPUT1", "FP32", [1, 4], {"shared_memory_region": "whole"})
    requests = {
        "in": infer_request("add_sub", inputs),
        "in_and_raw": infer_request("add_sub", [inputs[0], plain[1]], RAW[:1]),
        "out": infer_request("add_sub", plain, RAW, out),
        "in_and_out": infer_request("add_sub", inputs, (), [*out, grpc_wanted("OUTPUT1")]),
        "out_small": infer_request("add_sub", plain, RAW, [grpc_wanted("OUTPUT0", **_at("whole", 15, 128))]),
        "unknown": infer_request("add_sub", [inputs[0], grpc_tensor("INPUT1", "FP32", [1, 4], _at("nothing", 16))]),
        "and_contents": infer_request("add_sub", [inputs[0], with_contents]),
        "no_size": infer_request("add_sub", [inputs[0], no_size]),
    }
    cases = [_with_memory(grpc_case(f"grpc_shm/{key}", "ModelInfer", message)) for key, message in requests.items()]
    status = pb.SystemSharedMemoryStatusRequest
    return [
        *cases,
        grpc_case("grpc_shm/status", "SystemSharedMemoryStatus"),
        grpc_case("grpc_shm/status_one", "SystemSharedMemoryStatus", status(name="whole")),
        grpc_case("grpc_shm/status_unknown", "SystemSharedMemoryStatus", status(name="nothing")),
        grpc_case(
            "grpc_shm/register_again", "SystemSharedMemoryRegister", register(name="whole", key=_KEY, byte_size=8)
        ),
        grpc_case(
            "grpc_shm/register_large", "SystemSharedMemoryRegister", register(name="x", key=_KEY, byte_size=_SIZE + 1)
        ),
        grpc_case(
            "grpc_shm/register_unknown", "SystemSharedMemoryRegister", register(name="x", key="/nothing", byte_size=8)
        ),
        grpc_case("grpc_shm/register", "SystemSharedMemoryRegister", register(name="other", key=_KEY, byte_size=8)),
        grpc_case(
            "grpc_shm/unregister", "SystemSharedMemoryUnregister", pb.SystemSharedMemoryUnregisterRequest(name="other")
        ),
        grpc_case("grpc_shm/cuda_status", "CudaSharedMemoryStatus"),
        grpc_case("grpc_shm/cuda_unregister", "CudaSharedMemoryUnregister"),
    ]


def _giving_back() -> list[Case]:
    return [
        _post("unregister_unknown", "/region/nothing/unregister"),
        _post("unregister", "/region/part/unregister"),
        _status("one_less"),
        _post("unregister_with_body", "/region/bare/unregister", {"x": 1}),
        _post("unregister_all", "/unregister"),
        _status("none_left"),
        _with_memory(infer("shm/after_unregister", "add_sub", _inputs())),
        http_case("shm/get_register", "GET", "/v2/systemsharedmemory/region/x/register"),
        http_case("shm/post_status", "POST", "/v2/systemsharedmemory/status"),
    ]
