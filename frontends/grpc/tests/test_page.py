"""The page of this frontend says what the code does."""

import re
from pathlib import Path
from types import SimpleNamespace

from naiad.errors import InvalidArgumentError, UnsupportedError
from naiad_grpc.admission import HEADER_PREFIX, SHUTTING_DOWN
from naiad_grpc.catalogue import operations
from naiad_grpc.codec.parameters import read_parameters
from naiad_grpc.messages import SERVICE, message_class
from naiad_grpc.options import OPTIONS
from naiad_grpc.statuses import CODES, Code
from naiad_kit.frontends.restrictions import APIS

PAGE = (Path(__file__).parents[3] / "docs" / "grpc.md").read_text()


def test_the_page_has_every_option_with_its_default():
    documented = dict(re.findall(r"^\| `--([a-z0-9-]+)` \| (?:`([^`]*)`)? *\|", PAGE, re.MULTILINE))

    assert documented == {each.name: _as_text(each.default) for each in OPTIONS}


def _as_text(default):
    return "" if default == () else str(default).lower()


def no_service(kind):
    raise UnsupportedError(f"there is no {kind.name}")


def test_the_page_has_every_rpc_with_its_group():
    settings = {"grpc-header-forward-pattern": "", "grpc-max-response-size": 1}
    server = SimpleNamespace(settings=settings, labels=None, service=no_service)
    rows = re.findall(r"^\| `([\w./]+)` \| `([a-z-]+)` \|", PAGE, re.MULTILINE)
    documented = {f"/{name}" if "/" in name else f"/{SERVICE}/{name}": api for name, api in rows}

    assert documented == {each.path: each.api for each in operations(server, None)}


def test_the_page_has_every_error_at_its_status():
    documented = {
        name: status
        for status, cell in re.findall(r"^\| `([A-Z_]+)` \| (.+) \|$", PAGE, re.MULTILINE)
        for name in re.findall(r"`(\w+Error)`", cell)
    }

    assert documented == {kind.__name__: code.name for kind, code in CODES.items()}
    assert set(re.findall(r"^\| `([A-Z_]+)` \|", PAGE, re.MULTILINE)) <= {code.name for code in Code}


def test_the_page_has_the_members_that_each_parameter_may_have():
    rows = re.findall(r"^\| (.+?) \| ((?:`\w+_param`(?:, )?)+) \|", PAGE, re.MULTILINE)
    documented = {
        name: set(re.findall(r"\w+_param", members))
        for names, members in rows
        for name in re.findall(r"`(\w+)`", names)
        if not names.startswith("of an output")
    }
    documented["mine"] = documented.pop("triton_")

    assert documented == {name: {kind for kind in _VALUES if _is_taken(name, kind)} for name in documented}


_VALUES = {"bool_param": True, "int64_param": 1, "uint64_param": 1, "double_param": 0.5, "string_param": "s"}


def _is_taken(name, kind):
    try:
        read_parameters({name: message_class("InferParameter")(**{kind: _VALUES[kind]})})
    except InvalidArgumentError:
        return False
    return True


def test_the_page_has_the_groups_and_the_words_of_the_end():
    assert all(f"`{api}`" in PAGE for api in APIS)
    assert HEADER_PREFIX in PAGE
    assert " ".join(PAGE.split()).count(SHUTTING_DOWN) == 1
