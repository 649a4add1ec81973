"""Differences that are meant: what they look like, and the row of docs/differences.md that says why."""

from dataclasses import dataclass
from fnmatch import fnmatchcase

from .comparing import Difference


@dataclass(frozen=True, slots=True)
class Accepted:
    """Differences whose key and both sides match these patterns; `row` is the first cell of the row about them."""

    row: str
    key: str
    ours: str = "*"
    theirs: str = "*"

    def covers(self, difference: Difference) -> bool:
        """Whether it is one of these."""
        told = ((difference.key, self.key), (difference.ours, self.ours), (difference.theirs, self.theirs))
        return all(fnmatchcase(value, pattern.replace("[", "[[]")) for value, pattern in told)


_MISTAKES = "broken JSON, a missing or mistyped member, wrong number of elements"
_ABSENT = "a model or version that is not there, asked whether it is ready"
_FAILED = "a model that failed to load or was unloaded, asked for without a version"
_HTTP = "what is no sound HTTP"
_COUNTS = "a request that its model answers with an error, in the statistics"

ACCEPTED = (
    Accepted("`Content-Type` of an error", "*:content-type", "'application/json'", "'text/plain'"),
    Accepted("`Content-Type` of an answer without a body", "*:content-type", "None"),
    Accepted(_MISTAKES, "*:status", "400 *", "500 *attempt to *"),
    Accepted(_MISTAKES, "*:status", "400 *", "500 *failed to parse the request JSON*"),
    Accepted(_MISTAKES, "*:status", "400 *", "500 *hape does not match true shape*"),
    Accepted(_MISTAKES, "repository/unload_no_json:status", "400 *", "200"),
    Accepted(_MISTAKES, "json_text/empty:status", "400 *", "200"),
    Accepted(_MISTAKES, "*:status", "400 *: it must be *", "200"),
    Accepted("text that is no UTF-8", "json_text/latin_1*"),
    Accepted("a key that stands twice in a JSON object", "json_text/key_twice:*"),
    Accepted("JSON nested deeper than 100", "json_text/deep_200:status", "400 *", "200"),
    Accepted("integers out of the datatype's range in JSON", "json/*:status", "400 *has the value*", "200"),
    Accepted("integers out of the datatype's range in JSON", "parameters/*:status", "400 *", "200"),
    Accepted("`Inf` as a number in JSON", "json/FP32_*Inf:status", "400 *", "200"),
    Accepted("bytes of a BOOL tensor other than 0 and 1", "binary/BOOL_2:content"),
    Accepted("an output that a request names twice", "*outputs/twice:status", "400 *", "200"),
    Accepted("a required input that is missing beside optional ones", "*names/optional_required_missing:status"),
    Accepted("a request that Triton does not survive", "*", "*", "the server died"),
    Accepted("a request that Triton does not survive", "shapes/huge_size:status", "400 *", "closed *"),
    Accepted("NaN among the scores of a classification", "classes/special:*"),
    Accepted("version 0", "*_0:status", "400 *", "404 *"),
    Accepted("version 0", "health/version_zero:status", "400 *", "404 *"),
    Accepted(_ABSENT, "*ready*:status", "404 *", "400 *"),
    Accepted(_ABSENT, "health/version_1_of_latest:status", "404 *", "400 *"),
    Accepted(_FAILED, "repository/*:status", "503 *", "404 *"),
    Accepted(_FAILED, "repository/*:status", "503 *", "400 *"),
    Accepted("percent-encoded paths", "health/model_encoded:status", "200", "404 *"),
    Accepted("percent-encoded paths", "head/escaped_slash:status", "200", "404 *"),
    Accepted("percent-encoded paths", "repository/load_escaped*:status", "400 *", "500 *"),
    Accepted("percent-encoded paths", "repository/load_blank:status", "400 *", "500 *"),
    Accepted("a load request without a name", "repository/load_no_name:status", "400 *", "404 *"),
    Accepted("`HEAD` on a path that answers `GET`", "method/head_live:status", "200", "405"),
    Accepted("a model's error of the kind `UNKNOWN`", "failing/10:status", "500 *", "400 *"),
    Accepted("a request that its caller took back", "failing/17:status", "499 *", "400 *"),
    Accepted("names of encodings in `Content-Encoding`", "compressed/upper_case:status", "200", "501 *"),
    Accepted("names of encodings in `Content-Encoding`", "compressed/empty_name:status", "200", "501 *"),
    Accepted("a gzip body of several members", "compressed/gzip_in_two_members:status", "200"),
    Accepted("a compressed body that is cut, or goes on behind its end", "compressed/gzip_*:status", "400 *", "200"),
    Accepted("`sequence` among the extensions", "health/server_metadata:$.extensions", theirs="*'sequence'*"),
    Accepted(_HTTP, "head/*:status"),
    Accepted(_HTTP, "body/*:status"),
    Accepted("statistics of an unknown model", "statistics/*:status", "404 *", "400 *"),
    Accepted("`batch_reasons` in the statistics", "statistics/*.batch_reasons", "*", "'(absent)'"),
    Accepted("warm-up in the statistics", "statistics/all:$.model_stats*configured*"),
    Accepted("a request that its model answers with an error, in the statistics", "statistics/failed:*"),
    Accepted("a request that its model answers with an error, in the statistics", "statistics/all:*failing 1.*"),
    Accepted("unknown model in a load request", "repository/load_unknown:status", "404 *", "500 *"),
    Accepted("an unknown key in a load request", "repository/load_unknown_parameter:status", "400 *", "500 *"),
    Accepted("a load request whose configuration or files are wrong", "repository/load_config_*:status", "*", "500 *"),
    Accepted(
        "a load request whose configuration or files are wrong", "repository/load_file_*:status", "400 *", "500 *"
    ),
    Accepted("a load request whose configuration or files are wrong", "repository/override_*:status", "400 *", "500 *"),
    Accepted("a reload that fails", "repository/*.reason", "'the last reload failed*", "'(absent)'"),
    Accepted(
        "a model that exists only in its load request, in the index", "repository/*.brand_new 1", "*", "'(absent)'"
    ),
    Accepted("the index right after an unload", "repository/index*.state", "'UNAVAILABLE'", "'UNLOADING'"),
    Accepted("the index right after an unload", "repository/index*.reason", "'unloaded'", "'(absent)'"),
)


def acceptance(difference: Difference) -> str:
    """The row that accepts a difference; "" when there is none."""
    return next((accepted.row for accepted in ACCEPTED if accepted.covers(difference)), "")
