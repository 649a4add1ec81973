"""`naiad infer`: sends one request, whose inputs stand on the command line, and prints the outputs."""

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from naiad.errors import NaiadError, NotFoundError, UnsupportedError, UsageError
from naiad_cli.chart import drawn, plain
from naiad_cli.client import Client, add_server_options, client_of
from naiad_cli.number_types import seconds
from naiad_cli.parser import Parser, Subparsers, did_you_mean
from naiad_cli.tables import add_json_option, print_json, print_table
from naiad_cli.tensors import json_elements, outputs_of, parameter, read_tensor, shown, to_wire
from naiad_kit.explaining import EXPLAIN

HEADER_LENGTH = "Inference-Header-Content-Length"

_LONGEST = 1e7
"""Seconds; longer timeouts overflow in sockets."""


def add_parser(subparsers: "Subparsers[Parser]") -> None:
    """Add the command `infer`."""
    parser = subparsers.add_parser(
        "infer",
        description="One request to a running server. Without --input it says what the model takes.",
        epilog="example: naiad infer add_sub --input INPUT0=1,2,3,4 --input INPUT1=@four.npy",
    )
    parser.add_argument("model", metavar="MODEL", help="the model's name")
    parser.add_argument("--model-version", default="", metavar="N", help="its version (default: the newest one)")
    add_server_options(parser)
    parser.add_argument(
        "--input",
        action="append",
        default=[],
        metavar="NAME=VALUES",
        help="values with commas between them, JSON, @FILE.npy or @FILE.json; may be given several times",
    )
    parser.add_argument(
        "--output", action="append", default=[], metavar="NAME", help="an output to ask for (default: all)"
    )
    parser.add_argument("--parameter", action="append", default=[], metavar="KEY=VALUE", help="a request parameter")
    parser.add_argument("--explain", action="store_true", help="print what became of the request, phase by phase")
    parser.add_argument("--stream", action="store_true", help="print each response of the model as it comes")
    add_json_option(parser)
    parser.add_argument("--id", default="", help="the request's id")
    parser.add_argument(
        "--timeout", type=seconds(most=_LONGEST), default=60.0, metavar="SECS", help="how long to wait (default: 60)"
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Ask the server for the model's inputs, send the request and print the outputs."""
    client = client_of(arguments, arguments.timeout)
    path = [
        "v2",
        "models",
        arguments.model,
        *(["versions", arguments.model_version] if arguments.model_version else []),
    ]
    try:
        metadata = client.get(*path).json()
    except NotFoundError as error:
        raise NotFoundError(f"{error}{_advice_on_models(client, arguments.model)}") from error
    if arguments.stream:
        return _stream(arguments, client, path, metadata)
    body, header_length = request_body(arguments, metadata)
    try:
        answer = client.post(*path, "infer", body=body, headers={HEADER_LENGTH: str(header_length)})
    except UnsupportedError as error:
        if not _is_decoupled(client, path):
            raise
        raise UnsupportedError(f"{error}; here add --stream") from error
    length = int(answer.headers.get(HEADER_LENGTH.lower(), len(answer.body)))
    document = json.loads(answer.body[:length])
    if arguments.json:
        outputs = outputs_of(document, answer.body[length:])
        print_json(document | {"outputs": [_output_document(*output) for output in outputs]})
        return 0
    print(f"{document['model_name']} version {document['model_version']}")
    parameters = document.get("parameters", {})
    explanation = parameters.pop(EXPLAIN, None) if arguments.explain else None
    for key, value in parameters.items():
        print(f"parameter {key} = {json.dumps(value)}")
    for name, datatype, array in outputs_of(document, answer.body[length:]):
        print(f"{name} {datatype}{list(array.shape)}\n{shown(array, datatype)}")
    return _print_explanation(explanation) if arguments.explain else 0


def _advice_on_models(client: Client, name: str) -> str:
    """The model of the server whose name is near, or how to list its models; "" for a model that it has."""
    try:
        names = {entry["name"] for entry in client.post("v2", "repository", "index", body=b"{}").json()}
    except NaiadError:  # a key may allow requests and no index
        return ""
    return "" if name in names else did_you_mean(name, sorted(names)) or "; naiad models lists those there are"


def _is_decoupled(client: Client, path: Sequence[str]) -> bool:
    """Whether the configuration of the model says that it gives several responses; False where the server has none."""
    try:
        config = client.get(*path, "config").json()
    except NaiadError:  # the error of the request says more
        return False
    policy = config.get("model_transaction_policy")
    return isinstance(policy, dict) and bool(policy.get("decoupled"))


def _stream(arguments: argparse.Namespace, client: Client, path: Sequence[str], metadata: Mapping[str, Any]) -> int:
    """Print the responses of generate_stream: with --json an object each, else the outputs by name."""
    outputs = {each["name"] for each in metadata["outputs"]}
    if arguments.explain:
        raise UsageError("--stream has no --explain; leave one of the two away")
    for event in client.events(*path, "generate_stream", body=_flat_body(arguments, metadata)):
        if "error" in event and "error" not in outputs:
            raise NaiadError(str(event["error"]))
        shown_outputs = arguments.output or [name for name in event if name in outputs]
        if arguments.json:
            print(json.dumps(event, ensure_ascii=False), flush=True)
            continue
        for name in shown_outputs:
            value = event.get(name)
            text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            print(text if len(outputs) == 1 else f"{name} {text}", flush=True)
    return 0


def _flat_body(arguments: argparse.Namespace, metadata: Mapping[str, Any]) -> bytes:
    """The body of generate_stream: the elements of each input, and the parameters beside them."""
    document: dict[str, Any] = {
        key: parameter(text) for key, text in _pairs("--parameter", arguments.parameter).items()
    }
    for name, (datatype, array) in _tensors(arguments, metadata).items():
        document[name] = json_elements(array, datatype)
    if arguments.id:
        document["id"] = arguments.id
    return json.dumps(document).encode()


def _output_document(name: str, datatype: str, array: np.ndarray) -> dict[str, Any]:
    return {"name": name, "datatype": datatype, "shape": list(array.shape), "data": json_elements(array, datatype)}


def _print_explanation(text: str | None) -> int:
    """Print the chart of an explanation, or why there is none."""
    if text is None:
        print("the server gave no explanation; start it with --allow-explain", file=sys.stderr)
        return 1
    if sys.stdout.isatty():
        print("", *drawn(json.loads(text)), sep="\n")
    else:
        print_table(("Phase", "Start µs", "Took µs", "Note"), plain(json.loads(text)))
    return 0


def request_body(arguments: argparse.Namespace, metadata: Mapping[str, Any]) -> tuple[bytes, int]:
    """The body of the infer request with all inputs in binary, and the length of its JSON part."""
    inputs, chunks = [], []
    for name, (datatype, array) in _tensors(arguments, metadata).items():
        chunks.append(to_wire(array))
        size = {"binary_data_size": len(chunks[-1])}
        inputs.append({"name": name, "datatype": datatype, "shape": list(array.shape), "parameters": size})
    document: dict[str, Any] = {"inputs": inputs}
    document["parameters"] = {key: parameter(text) for key, text in _pairs("--parameter", arguments.parameter).items()}
    if arguments.explain:
        document["parameters"][EXPLAIN] = True
    if arguments.id:
        document["id"] = arguments.id
    if arguments.output:
        document["outputs"] = [{"name": name, "parameters": {"binary_data": True}} for name in arguments.output]
    else:
        document["parameters"]["binary_data_output"] = True
    header = json.dumps(document).encode()
    return b"".join([header, *chunks]), len(header)


def _tensors(arguments: argparse.Namespace, metadata: Mapping[str, Any]) -> dict[str, tuple[str, np.ndarray]]:
    """The datatype and the array of each input. Raises UsageError for a name that the model has not."""
    written = _pairs("--input", arguments.input)
    taken = {each["name"]: each for each in metadata["inputs"]}
    unknown = sorted(set(written) - set(taken))
    if unknown or not written:
        problem = f"model '{arguments.model}' has no input '{unknown[0]}'" if unknown else "no --input is given"
        raise UsageError(f"{problem}; the model takes {_signature(metadata['inputs'])}")
    tensors = {}
    for name, text in written.items():
        datatype = taken[name]["datatype"]
        tensors[name] = datatype, read_tensor(name, text, datatype, taken[name]["shape"])
    return tensors


def _pairs(option: str, words: Sequence[str]) -> dict[str, str]:
    """The words split at their first `=`. Raises UsageError for a word without one or a name given twice."""
    pairs: dict[str, str] = {}
    for word in words:
        name, sign, value = word.partition("=")
        if not sign or not name or name in pairs:
            what = f"names '{name}' twice" if name in pairs else f"'{word}' has no NAME="
            raise UsageError(f"{option} {what}; write {option} NAME=VALUE once for each name")
        pairs[name] = value
    return pairs


def _signature(inputs: Sequence[Mapping[str, Any]]) -> str:
    return ", ".join(f"{each['name']} {each['datatype']}{each['shape']}" for each in inputs) or "no inputs"
