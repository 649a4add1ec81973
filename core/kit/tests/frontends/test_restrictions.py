"""Groups of calls that need a secret header."""

import pytest

from naiad.errors import InvalidArgumentError
from naiad_kit.frontends.restrictions import RestrictedApis

RULES = ("inference,health:key=secret", "trace:Other-Key=a=b")


@pytest.mark.parametrize(
    ("api", "headers", "expected"),
    [
        ("metadata", [], ""),
        ("inference", [(b"x-key", b"secret")], ""),
        ("health", [(b"x-a", b"b"), (b"x-key", b" secret ")], ""),
        ("trace", [(b"x-other-key", b"a=b")], ""),
        ("inference", [(b"x-key", b"secret"), (b"x-key", b"wrong")], ""),
        ("inference", [(b"x-key", b"wrong"), (b"x-key", b"secret")], "x-key"),
        ("inference", [], "x-key"),
        ("inference", [(b"x-key", b"")], "x-key"),
        ("inference", [(b"x-key", b"Secret")], "x-key"),
        ("trace", [(b"x-key", b"secret")], "x-Other-Key"),
    ],
)
def test_a_restricted_group_wants_its_header(api: str, headers: list[tuple[bytes, bytes]], expected: str) -> None:
    restricted = RestrictedApis("--restricted", RULES, "x-")

    refused = restricted.refusal(api, headers)

    assert refused == expected


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ("inference:key=", "gives the header 'key' no value, so every client would pass"),
        ("inference:key= ", "no value"),
        ("inference:=secret", "is not of the form"),
        ("inference:key", "is not of the form"),
        ("inference", "is not of the form"),
        ("inferrence:key=secret", "unknown restricted api 'inferrence'; there are health, "),
        ("inference,inference:key=secret", "api 'inference' can not be specified in multiple config groups"),
    ],
)
def test_a_rule_that_protects_nothing_is_refused(rule: str, message: str) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        RestrictedApis("--restricted", [rule])

    assert str(caught.value).startswith("--restricted: ")
    assert message in str(caught.value)


@pytest.mark.parametrize("header", ["my key", "schlüssel", "a:b", "a\tb"])
def test_a_header_that_no_client_can_send_is_refused(header: str) -> None:
    with pytest.raises(InvalidArgumentError, match="which no client can send"):
        RestrictedApis("--x", [f"inference:{header}=secret"])
