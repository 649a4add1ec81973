"""What is invalid JSON or invalid HTTP."""

from ..answers import Case
from ..http_asking import bytes_case, http_case, request
from .http_making import ADDS, A, B, document

_INPUT = b'{"name":"IN","datatype":"BYTES","shape":[1,1],"data":["x"]'
"""A sound input whose brace is open."""

_TEXTS: dict[str, bytes] = {
    "empty": b"",
    "space": b" ",
    "null": b"null",
    "number": b"5",
    "text": b'"text"',
    "list": b"[]",
    "object": b"{}",
    "open": b'{"inputs":[',
    "comma": b'{"inputs":[],}',
    "comment": b'{"inputs":[] /* none */}',
    "single_quotes": b"{'inputs':[]}",
    "twice": b'{"inputs":[]}{"inputs":[]}',
    "behind": b'{"inputs":[]} x',
    "bom": b'\xef\xbb\xbf{"inputs":[]}',
    "latin_1": b'{"id":"\xfc","inputs":[]}',
    "latin_1_in_data": b'{"inputs":[{"name":"IN","datatype":"BYTES","shape":[1,1],"data":["\xfc"]}]}',
    "surrogate": b'{"id":"\\ud800","inputs":[]}',
    "nul": b'{"id":"a\\u0000b","inputs":[]}',
    "zero_byte": b'{"inputs":[]}\x00',
    "inputs_null": b'{"inputs":null}',
    "inputs_object": b'{"inputs":{}}',
    "inputs_text": b'{"inputs":"IN"}',
    "inputs_texts": b'{"inputs":["IN"]}',
    "inputs_nulls": b'{"inputs":[null]}',
    "input_empty": b'{"inputs":[{}]}',
    "input_name_only": b'{"inputs":[{"name":"IN"}]}',
    "input_name_number": b'{"inputs":[{"name":5,"datatype":"BYTES","shape":[1,1],"data":["x"]}]}',
    "input_datatype_number": b'{"inputs":[{"name":"IN","datatype":5,"shape":[1,1],"data":["x"]}]}',
    "input_shape_number": b'{"inputs":[{"name":"IN","datatype":"BYTES","shape":1,"data":["x"]}]}',
    "input_shape_text": b'{"inputs":[{"name":"IN","datatype":"BYTES","shape":"[1,1]","data":["x"]}]}',
    "input_data_text": b'{"inputs":[{"name":"IN","datatype":"BYTES","shape":[1,1],"data":"x"}]}',
    "input_data_null": b'{"inputs":[{"name":"IN","datatype":"BYTES","shape":[1,1],"data":null}]}',
    "input_data_object": b'{"inputs":[{"name":"IN","datatype":"BYTES","shape":[1,1],"data":{}}]}',
    "input_parameters_list": b'{"inputs":[%b,"parameters":[]}]}' % _INPUT,
    "input_parameters_unknown": b'{"inputs":[%b,"parameters":{"a":1}}]}' % _INPUT,
    "key_twice": b'{"id":"a","id":"b","inputs":[%b}]}' % _INPUT,
    "deep_90": b'{"inputs":[{"name":"IN","datatype":"BYTES","shape":[1,1],"data":'
    + b"[" * 90
    + b'"x"'
    + b"]" * 90
    + b"}]}",
    "deep_200": b'{"inputs":[{"name":"IN","datatype":"BYTES","shape":[1,1],"data":'
    + b"[" * 200
    + b'"x"'
    + b"]" * 200
    + b"}]}",
    "deep_100000": b"[" * 100000,
    "deep_unknown": b'{"x":' + b"[" * 3000 + b"]" * 3000 + b',"inputs":[]}',
    "big_number": b'{"x":' + b"9" * 400 + b',"inputs":[]}',
    "leading_zero": b'{"inputs":[{"name":"IN","datatype":"BYTES","shape":[01,1],"data":["x"]}]}',
    "plus": b'{"inputs":[{"name":"IN","datatype":"BYTES","shape":[+1,1],"data":["x"]}]}',
}


def cases() -> list[Case]:
    """Every case of this page."""
    cases = [http_case(f"json_text/{key}", "POST", "/v2/models/words/infer", text) for key, text in _TEXTS.items()]
    return [*cases, *_heads(), *_bodies()]


def _heads() -> list[Case]:
    live = request("GET", "/v2/health/live")
    contents = {
        "no_host": b"GET /v2/health/live HTTP/1.1\r\n\r\n",
        "two_hosts": live.replace(b"Host", b"Host: other\r\nHost"),
        "no_version": b"GET /v2/health/live\r\n\r\n",
        "http_2": live.replace(b"1.1", b"2.0"),
        "http_9": live.replace(b"1.1", b"9.9"),
        "lower_case": live.replace(b"GET", b"get"),
        "unknown_method": live.replace(b"GET", b"FETCH"),
        "no_method": live.replace(b"GET ", b""),
        "bare_line_feeds": live.replace(b"\r\n", b"\n"),
        "leading_line": b"\r\n" + live,
        "space_before_colon": live.replace(b"Host:", b"Host :"),
        "folded": live.replace(b"localhost", b"local\r\n host"),
        "no_colon": live.replace(b"Host: localhost", b"Host localhost"),
        "absolute": b"GET http://localhost/v2/health/live HTTP/1.1\r\nHost: localhost\r\n\r\n",
        "noise": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
        "long_path": request("GET", "/v2/models/" + "x" * 5000),
        "long_header": request("GET", "/v2/health/live", headers={"X-Long": "x" * 5000}),
        "nul_in_path": request("GET", "/v2/health/live\x00"),
        "space_in_path": request("GET", "/v2/health/live x"),
        "bad_escape": request("GET", "/v2/models/%zz"),
        "escaped_slash": request("GET", "/v2%2Fhealth%2Flive"),
        "fragment": request("GET", "/v2/health/live#x"),
    }
    return [bytes_case(f"head/{key}", content) for key, content in contents.items()]


def _bodies() -> list[Case]:
    good = request("POST", ADDS, document([A, B]))
    head, body = good.split(b"\r\n\r\n", 1)
    length = b"Content-Length: %d" % len(body)
    chunked = head.replace(length, b"Transfer-Encoding: chunked") + b"\r\n\r\n"
    whole = b"%x\r\n%b\r\n" % (len(body), body)
    contents = {
        "chunked": chunked + whole + b"0\r\n\r\n",
        "chunked_pieces": chunked + b"".join(b"1\r\n%c\r\n" % byte for byte in body) + b"0\r\n\r\n",
        "chunked_extension": chunked + whole.replace(b"\r\n", b";x=1\r\n", 1) + b"0\r\n\r\n",
        "chunked_trailer": chunked + whole + b"0\r\nX-End: 1\r\n\r\n",
        "chunked_bad_size": chunked + b"zz\r\n" + body,
        "chunked_huge_size": chunked + b"fffffffffffffffff\r\n" + body,
        "length_text": good.replace(length, b"Content-Length: many"),
        "length_negative": good.replace(length, b"Content-Length: -5"),
        "length_plus": good.replace(length, b"Content-Length: +%d" % len(body)),
        "length_twice_equal": good.replace(length, length + b"\r\n" + length),
        "length_twice": good.replace(length, length + b"\r\nContent-Length: 5"),
        "length_and_chunked": head + b"\r\nTransfer-Encoding: chunked\r\n\r\n" + whole + b"0\r\n\r\n",
        "no_length": head.replace(length, b"X-Length: none") + b"\r\n\r\n",
        "expect": good.replace(length, length + b"\r\nExpect: other"),
        "content_type_text": good.replace(length, length + b"\r\nContent-Type: text/plain"),
        "get_with_body": request("GET", "/v2/health/live", b"body"),
    }
    return [bytes_case(f"body/{key}", content) for key, content in contents.items()]
