"""URLs and headers of requests to a model."""

from hashlib import sha256

import pytest

from naiad.errors import InvalidArgumentError
from naiad_http.codec.request_head import RequestHead
from naiad_http.request_heads import RequestHeadReader
from naiad_http.restrictions import Restrictions
from naiad_http.statuses import HttpError
from naiad_kit.frontends.api_keys import ApiKeys


def read(path, headers=(), pattern="", rules=()):
    return RequestHeadReader(pattern, Restrictions(rules)).read(path, tuple(headers))


@pytest.mark.parametrize(
    ("path", "request_head"),
    [
        (b"/v2/models/m/infer", RequestHead("m")),
        (b"/v2/models/m/versions/12/infer", RequestHead("m", 12)),
        (b"/v2/models/a%20b%C3%BC/infer", RequestHead("a bü")),
        (b"/v2/models/..%2F..%2Fetc/infer", RequestHead("../../etc")),
        (b"/v2/models/%FF/infer", RequestHead("\ufffd")),
        (b"/v2/models/m/versions/007/infer", RequestHead("m", 7)),
        (b"/v2/models/m/versions/9223372036854775807/infer", RequestHead("m", 2**63 - 1)),
        (b"/v2/models/m/generate", RequestHead("m", action="generate")),
        (b"/v2/models/m/versions/3/generate_stream", RequestHead("m", 3, action="generate_stream")),
    ],
)
def test_a_path_names_the_model_the_version_and_the_action(path, request_head):
    assert read(path) == request_head


@pytest.mark.parametrize(
    "path",
    [
        b"/v2/models/m",
        b"/v2/models//infer",
        b"/v2/models/m/infer/",
        b"/v2/models/a/b/infer",
        b"/v2/models/m/versions//infer",
        b"/v2/models/m/versions/x/infer",
        b"/v2/models/m/versions/-1/infer",
        b"/v2/models/m/versions/1.0/infer",
        b"/base/v2/models/m/infer",
        b"/v2/models/m/generate_streams",
        b"/v2/models/m/generator",
    ],
)
def test_another_path_is_no_route_of_inference(path):
    assert read(path) is None


@pytest.mark.parametrize(
    ("version", "message"),
    [
        (b"0", "invalid model version specified '0'"),
        (b"9223372036854775808", "failed to get model version from specified version string"),
        (b"9" * 5000, "failed to get model version from specified version string"),
    ],
)
def test_a_version_that_cannot_be_is_refused(version, message):
    with pytest.raises(InvalidArgumentError) as caught:
        read(b"/v2/models/m/versions/%b/infer" % version)

    assert message in str(caught.value)
    assert len(str(caught.value)) < 300


def test_the_headers_say_how_long_the_json_is_and_how_long_the_caller_waits():
    headers = [(b"INFERENCE-header-content-LENGTH", b" 17 "), (b"Request-Timeout", b"0.25")]

    request_head = read(b"/v2/models/m/infer", headers)

    assert (request_head.header_length, request_head.timeout) == (17, 0.25)


@pytest.mark.parametrize("value", [b"", b"x", b"1.5", b"0x10", b"1_0", b"--1", b"\xb2", b"9" * 40])
def test_a_header_length_that_is_no_integer_is_refused(value):
    with pytest.raises(InvalidArgumentError, match="Unable to parse Inference-Header-Content-Length, got: "):
        read(b"/v2/models/m/infer", [(b"inference-header-content-length", value)])


@pytest.mark.parametrize("action", [b"generate", b"generate_stream"])
def test_generate_takes_no_compressed_body(action):
    with pytest.raises(InvalidArgumentError, match="does not accept a compressed body, and Content-Encoding is 'gzip'"):
        read(b"/v2/models/m/" + action, [(b"Content-Encoding", b"GZIP")])
    assert read(b"/v2/models/m/" + action, [(b"Content-Encoding", b"identity")]).action == action.decode()


def test_the_json_of_generate_is_the_whole_body_whatever_a_header_says():
    headers = [(b"inference-header-content-length", b"no number")]

    assert read(b"/v2/models/m/generate", headers).header_length is None


@pytest.mark.parametrize("value", [b"", b"soon", b"0", b"-1", b"nan", b"inf", b"1e999"])
def test_a_timeout_that_is_no_time_is_refused(value):
    with pytest.raises(InvalidArgumentError, match="Request-Timeout must be a number of seconds greater than 0"):
        read(b"/v2/models/m/infer", [(b"request-timeout", value)])


def test_headers_whose_names_match_are_forwarded_whatever_their_case():
    headers = [(b"X-User", b"ada"), (b"Other", b"no"), (b"my-x-user", b" bob ")]

    request_head = read(b"/v2/models/m/infer", headers, pattern="x-u")

    assert request_head.forwarded == {"X-User": "ada", "my-x-user": "bob "}


def test_what_a_forwarded_header_says_is_utf_8_where_it_can_be():
    headers = [(b"x-name", "Zoë 名".encode()), (b"x-old", "Zoë".encode("latin-1"))]

    assert read(b"/v2/models/m/infer", headers, pattern="^x-").forwarded == {"x-name": "Zoë 名", "x-old": "Zoë"}


def test_a_pattern_may_ask_for_the_exact_case():
    headers = [(b"X-User", b"ada"), (b"x-user", b"bob")]

    assert read(b"/v2/models/m/infer", headers, pattern="(?-i)^x-").forwarded == {"x-user": "bob"}


@pytest.mark.parametrize("name", [b"priority", b"timeout", b"headers", b"sequence_id", b"triton_x"])
def test_a_reserved_name_is_not_forwarded(name):
    with pytest.raises(InvalidArgumentError, match="is reserved for Triton usage and cannot be forwarded"):
        read(b"/v2/models/m/infer", [(name, b"1")], pattern=".*")


def test_a_pattern_that_is_none_is_refused_at_start():
    with pytest.raises(InvalidArgumentError, match="--http-header-forward-pattern: '\\[' is not a valid"):
        RequestHeadReader("[", Restrictions())


def test_a_restricted_api_asks_for_its_header():
    rules = ["inference,health:Secret=open"]

    assert read(b"/v2/models/m/infer", [(b"secret", b"open")], rules=rules) == RequestHead("m")
    for headers in ([], [(b"secret", b"shut")], [(b"secret", b"")]):
        with pytest.raises(HttpError, match="This API is restricted, expecting header 'Secret'") as caught:
            read(b"/v2/models/m/infer", headers, rules=rules)
        assert caught.value.status == 403


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        (["inference"], "is not of the form"),
        (["inference:key"], "is not of the form"),
        (["inference:=x"], "is not of the form"),
        (["dreams:k=v"], "unknown restricted api 'dreams'"),
        (["health:k=v", "metadata,health:k=v"], "api 'health'"),
    ],
)
def test_a_rule_that_is_invalid_is_refused_at_start(rules, message):
    with pytest.raises(InvalidArgumentError) as caught:
        Restrictions(rules)

    assert message in str(caught.value)


def test_the_caller_s_position_in_a_trace_is_read():
    headers = [(b"Traceparent", b" 00-ab-cd-01 "), (b"tracestate", b"a=1"), (b"TraceState", b"b=2")]

    request_head = RequestHeadReader("", Restrictions()).read(b"/v2/models/m/infer", headers)

    assert (request_head.traceparent, request_head.tracestate) == ("00-ab-cd-01", "a=1,b=2")


@pytest.mark.parametrize(
    ("headers", "forwarded"),
    [
        ({b"x-api-key": b"key", b"authorization": b"Bearer own"}, {"authorization": "Bearer own"}),
        ({b"Authorization": b"bearer key", b"x-user": b"ada"}, {"x-user": "ada"}),
        ({b"Authorization": b"bearer key", b"X-Api-Key": b"key"}, {}),
        ({b"X-Api-Key": b" key", b"Authorization": b"Bearer key "}, {}),
        ({b"Authorization": b"Basic own", b"X-Api-Key": b"key"}, {"Authorization": "Basic own"}),
    ],
)
def test_the_api_key_of_the_caller_is_not_forwarded_to_models(tmp_path, headers, forwarded):
    file = tmp_path / "keys.toml"
    file.write_text(f'[[key]]\nname = "app"\nsha256 = "{sha256(b"key").hexdigest()}"\n')
    reader = RequestHeadReader(".*", Restrictions((), ApiKeys(str(file))))

    assert reader.read(b"/v2/models/m/infer", tuple(headers.items())).forwarded == forwarded
    assert len(read(b"/v2/models/m/infer", headers.items(), pattern=".*").forwarded) == 2
