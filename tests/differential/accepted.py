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
        message = ((difference.key, self.key), (difference.ours, self.ours), (difference.theirs, self.theirs))
        return all(fnmatchcase(value, pattern.replace("[", "[[]")) for value, pattern in message)


_MISTAKES = "broken JSON, a missing or mistyped member, wrong number of elements"
_ABSENT = "a model or version that is not there, asked over HTTP whether it is ready"
_FAILED = "a model that failed to load or was unloaded, asked for without a version"
_LOAD = "a load request whose configuration or files are wrong"
_NO_OBJECT = "the body of a load, unload or index request that is valid JSON and no object"
_RANGE = "integers out of the datatype's range in JSON or in gRPC `contents`"
_GENERATE = "parameters that the protocol knows, in a generate request"
_KEY = "an invalid key of shared memory"
_HTTP = "what is invalid HTTP"
_REFUSED = "requests that a full queue refused or that were cancelled, in the statistics"
_BEHIND = "a request behind a refused one on the same connection"
_SEQUENCE = "`sequence_id` and its flags in responses of an ensemble"
_ALONE = "an output that an early step of an ensemble makes, asked for alone"
_TWICE = "a failed request of an ensemble, in the metrics and the statistics"
_COUNTS = "a request that its model answers with an error, in the statistics"

_OF_GENERATE = (
    Accepted(_GENERATE, "generate/*report", "*, {}, *", '*"sequence_id": 5*'),
    Accepted(_GENERATE, "generate/*report", "*, {}, *", '*"priority": 1*'),
    Accepted(_GENERATE, "generate/*/id:*report", "*, {}, *", '*"id": "the id"*'),
    Accepted(_GENERATE, "generate/*/own_reserved:status", "400 *", "200*"),
    Accepted("nested arrays in a generate request", "generate/*/nested_list:status", "400 *", "200*"),
    Accepted(
        "`parameters` of a generate request that are no object", "generate/*/parameters_text:status", "*", "500 *"
    ),
    Accepted("a model that raises, asked by `generate`", "generate/*/fails*:status", "500*", "400*"),
    Accepted("`generate` of a model that does not answer once", "generate/*:status", "400 *", "200 'generate expects*"),
    Accepted(_RANGE, "generate/*/number_huge:status", "400 *", "200*"),
    Accepted("a required input that is missing beside optional ones", "generate/*/missing:*"),
)
_OF_GRPC = (
    Accepted("health of a service over gRPC that is not served", "grpc_check/other:status", "NOT_FOUND *", "OK"),
    Accepted("version 0", "grpc_ModelReady/version_0:status", "INVALID_ARGUMENT *", "OK"),
    Accepted("version 0", "grpc_*/*version_0:status", "INVALID_ARGUMENT *", "NOT_FOUND *"),
    Accepted(
        "a version that only begins with a number, over gRPC", "grpc_*/version_*:status", "INVALID_ARGUMENT *", "OK"
    ),
    Accepted("an invalid gRPC message", "grpc_noise/*:status", "INVALID_ARGUMENT *", "INTERNAL *"),
    Accepted("an invalid gRPC message", "stream/noise:$.came"),
    Accepted("an invalid gRPC message", "stream/latin_1:$.came"),
    Accepted(_RANGE, "grpc_contents/*_300:status", "INVALID_ARGUMENT *", "OK"),
    Accepted(
        "more `raw_input_contents` than inputs", "grpc_sources/three_raw_of_two:status", "INVALID_ARGUMENT *", "OK"
    ),
    Accepted("`classification` of 0 over gRPC", "grpc_classes/0:status", "OK", "INVALID_ARGUMENT *"),
    Accepted("an output that a request names twice", "grpc_outputs/twice:status", "INVALID_ARGUMENT *", "OK"),
    Accepted("a negative timeout over gRPC", "grpc_parameters/timeout_negative:status", "INVALID_ARGUMENT *", "OK"),
    Accepted("an output that a model gives twice", "*failing/7:*"),
    Accepted("gRPC error mode of a stream", "stream/strict_*:status", "*", "OK"),
    Accepted("the version in a response that is empty or an error", "stream/*.model_version", "'1'", "''"),
    Accepted("statistics of an unknown model", "grpc_statistics/*:status", "NOT_FOUND *", "INVALID_ARGUMENT *"),
    Accepted("warm-up in the statistics", "grpc_statistics/*:$.model_stats.configured*"),
    Accepted(_FAILED, "grpc_repository/*:status", "UNAVAILABLE *"),
    Accepted("`repository_name` of an index request over gRPC", "grpc_repository/index_named:status", "OK"),
    Accepted("unknown model in a load request", "grpc_repository/load_unknown:status", "NOT_FOUND *", "INTERNAL *"),
    Accepted(_LOAD, "grpc_repository/*:status", "INVALID_ARGUMENT *", "INTERNAL *"),
    Accepted("an unknown key in an unload request", "grpc_repository/unload_unknown*:status", theirs="OK"),
    Accepted("an unknown key in an unload request", "repository/unload_unknown_par*:status", "400 *", "200"),
)
_OF_SETTINGS = (
    Accepted("trace or log settings of an unknown name", "*/*unknown:status", "400 *", "200"),
    Accepted("trace or log settings of an unknown name", "grpc_*/*unknown:status", "INVALID_ARGUMENT *", "OK"),
    Accepted("invalid trace settings", "grpc_trace/*:status", "INVALID_ARGUMENT *", "OK"),
    Accepted("traces without a file", "grpc_trace/*:status", "OK", "*trace file name is not given*"),
    Accepted(
        "trace settings of an unknown model", "grpc_trace/unknown_model_*:status", "NOT_FOUND *", "INVALID_ARGUMENT *"
    ),
    Accepted("invalid trace settings", "trace/*:status", "400 *", "200"),
    Accepted("a trace rate of 0", "trace/*_level*:status", "200", "400 *sample rate must be non-zero*"),
    Accepted("the mode of traces, over the network", "trace/*_mode:status", "501 *", "200"),
    Accepted("trace settings of an unknown model", "trace/*model:status", "404 *", "400 *"),
    Accepted("settings updated with an empty body", "*/*no_body:status", "200", "500 *"),
    Accepted("an unknown log format", "logging/*:status", "400 *", "503 *"),
)
_OF_SHARED_MEMORY = (
    Accepted(_KEY, "shm/register_key_*:status", "400 *", "500 *"),
    Accepted("a segment that is not there", "*shm/register_*unknown:status", "404 *", "500 *"),
    Accepted("a second region over the same segment", "shm/register_part:status", "200", "500 *"),
    Accepted("a second region over the same segment", "grpc_shm/register:status", "OK", "INTERNAL *"),
    Accepted("a second region over the same segment", "shm/*:$*.part", theirs="'(absent)'"),
    Accepted("a region without bytes", "shm/register_empty:status", "400 *", "500 *"),
    Accepted("a segment that is not there", "grpc_shm/register_unknown:status", "NOT_FOUND *", "INTERNAL *"),
    Accepted("a second region over the same segment", "grpc_shm/*:$*.part", theirs="'(absent)'"),
    Accepted(
        "a region that ends behind its segment", "grpc_shm/register_large:status", "INVALID_ARGUMENT *", "INTERNAL *"
    ),
    Accepted(
        "an output that does not fit its shared memory", "grpc_shm/out_small:status", "INVALID_ARGUMENT *", "INTERNAL *"
    ),
    Accepted("an output that does not fit its shared memory", "shm/out_small:status", "400 *", "500 *"),
)
_OF_OBSERVING = (
    Accepted("metrics of Naiad's own", "metrics/get:$.naiad_*", theirs="'(absent)'"),
    Accepted("metrics that newer versions have", "metrics/get:$.nv_inference_first_response_*", theirs="'(absent)'"),
    Accepted("metrics that newer versions have", "metrics/get:$.nv_model_load_duration_secs", theirs="'(absent)'"),
    Accepted("another path on the port of the metrics", "metrics/*:status", "404", "200"),
    Accepted(_COUNTS, "metrics/get:$.nv_inference_exec_count.values.failing 1"),
    Accepted(_REFUSED, "together/*counts:*.fail.count"),
    Accepted("`batch_reasons` in the statistics", "together/*.batch_reasons", "*", "'(absent)'"),
    Accepted(_BEHIND, "together/after_*:$[1][0]", "'200'", "'no answer'"),
    Accepted(_BEHIND, "together/after_*:$[1][1]", "{*", "None"),
    Accepted("texts with quotes in traces of tensors", "traces/texts:*"),
    Accepted("numbers with a point in traces of tensors", "traces/ensemble:$.activities*.data"),
    Accepted(
        "the events of a step of an ensemble, and of a decoupled model",
        "traces/ensemble:$.events",
    ),
)
_OF_SEQUENCES = (
    Accepted("a correlation id that is a text, in its control tensor", "sequences/sums_text/*:status", "200", "400 *"),
    Accepted(
        "a correlation id of another type than its control tensor",
        "sequences/*text_for_a_number:status",
        "400 *",
        "200",
    ),
    Accepted("sequence parameters for an iterative model", "sequences/again/*_with_an_end:status", "200", "400 *"),
    Accepted("a request that a model which is not iterative reschedules", "sequences/again_*:status", "500 *"),
)
_OF_ENSEMBLES = (
    Accepted("the order of the outputs of an ensemble", "*ensembles/all:*output*"),
    Accepted("settings that newer versions have", "config/*.max_inflight_requests", "0", "'(absent)'"),
    Accepted(_ALONE, "ensembles/of_the_first_step:status", "200", "400 *deadlock*"),
    Accepted(_ALONE, "grpc_ensembles/of_the_first_step:status", "OK", "INVALID_ARGUMENT *deadlock*"),
    Accepted(_TWICE, "metrics/get:$.nv_inference_request_failure.values.halfway 1 OTHER", "1.0", "2.0"),
    Accepted(_SEQUENCE, "metrics/halfway_0:$.parameters", "'(absent)'"),
    Accepted(_SEQUENCE, "*ensembles/*.parameters", "'(absent)'", "{'sequence_id': 0, *"),
    Accepted(_SEQUENCE, "*ensembles/*.sequence_*", "'(absent)'"),
    Accepted(_SEQUENCE, "metrics/chain:$.parameters", "'(absent)'"),
    Accepted("a model's error of the kind `UNKNOWN`", "ensembles/failing/10:status", "500 *", "400 *"),
    Accepted("a request that its caller took back", "ensembles/failing/17:status", "499 *", "400 *"),
    Accepted(
        "`generate` of a model that does not answer once", "ensembles/*:status", "400 *", "200 'generate expects*"
    ),
    Accepted("`batch_reasons` in the statistics", "ensembles/*.batch_reasons", "*", "'(absent)'"),
    Accepted("an ensemble whose model was unloaded", "ensembles/*without_step:status", "503 *"),
    Accepted(_FAILED, "ensembles/ready_of_*:status", "503 *", "400 *"),
    Accepted(_FAILED, "not_strict/broken_ready:status", "503 *", "400 *"),
)
_OF_ACCESS = (
    Accepted("a wrong method on a restricted path", "restricted/get_index_*:status", "405 *", "403 *"),
    Accepted("a forwarded header of a reserved name", "*forwarded/reserved:status", theirs="200"),
    Accepted("a forwarded header of a reserved name", "*forwarded/reserved:status", theirs="OK"),
    Accepted("an empty header that is forwarded", "forwarded/empty:*"),
    Accepted(_FAILED, "not_explicit/broken_ready:status", "503 *", "400 *"),
)

ACCEPTED = (
    Accepted("`Content-Type` of an error", "*:content-type", "'application/json'", "'text/plain'"),
    Accepted("`Content-Type` of an error", "metrics/post:content-type", "'text/plain; charset=utf-8'", "'text/plain'"),
    Accepted("`Content-Type` of an answer without a body", "*:content-type", "None"),
    Accepted("the body of an answer about health", "*:$*", "{'live': *}", "None"),
    Accepted("the body of an answer about health", "*:$", "{*'ready': *}", "None"),
    Accepted(_MISTAKES, "*:status", "400 *", "500 *attempt to *"),
    Accepted(_MISTAKES, "*:status", "400 *", "500 *failed to parse the request JSON*"),
    Accepted(_MISTAKES, "*:status", "400 *", "500 *hape does not match true shape*"),
    Accepted(_MISTAKES, "repository/unload_no_json:status", "400 *", "200"),
    Accepted(_MISTAKES, "json_text/empty:status", "400 *", "200"),
    Accepted(_MISTAKES, "*:status", "400 *: it must be *", "200"),
    Accepted(_MISTAKES, "generate/*:status", "400 *", "500 *"),
    Accepted(_MISTAKES, "trace/*:status", "400 *", "500 *"),
    Accepted("text that is no UTF-8", "json_text/latin_1*"),
    Accepted("a key that stands twice in a JSON object", "json_text/key_twice:*"),
    Accepted(
        "JSON nested deeper than 100 in the `data` of a tensor, or than 1,024 elsewhere",
        "json_text/deep_200:status",
        "400 *",
        "200",
    ),
    Accepted(_RANGE, "json/*:status", "400 *has the value*", "200"),
    Accepted(_RANGE, "parameters/*:status", "400 *", "200"),
    Accepted("`Inf` as a number in JSON", "json/FP32_*Inf:status", "400 *", "200"),
    Accepted("bytes of a BOOL tensor other than 0 and 1", "binary/BOOL_2:content"),
    Accepted("an output that a request names twice", "*outputs/twice:status", "400 *", "200"),
    Accepted("a required input that is missing beside optional ones", "*names/optional_required_missing:status"),
    *(Accepted("a request that Triton does not survive", "*", ours, "the server died") for ours in ("400 *", "200")),
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
    Accepted("the path `/` over HTTP", "health/root:status", "200", "404 *"),
    Accepted("a model's error of the kind `UNKNOWN`", "failing/10:status", "500 *", "400 *"),
    Accepted("a request that its caller took back", "failing/17:status", "499 *", "400 *"),
    Accepted("names of encodings in `Content-Encoding`", "compressed/upper_case:status", "200", "501 *"),
    Accepted("names of encodings in `Content-Encoding`", "compressed/empty_name:status", "200", "501 *"),
    Accepted("a gzip body of several members", "compressed/gzip_in_two_members:status", "200"),
    Accepted("a compressed body that is cut, or goes on behind its end", "compressed/gzip_*:status", "400 *", "200"),
    *(Accepted(_HTTP, f"{part}/*:status", ours) for part in ("head", "body") for ours in ("400 *", "200")),
    Accepted(_HTTP, "head/*:status", "505 *"),
    Accepted("statistics of an unknown model", "statistics/*:status", "404 *", "400 *"),
    Accepted("`batch_reasons` in the statistics", "statistics/*.batch_reasons", "*", "'(absent)'"),
    Accepted("warm-up in the statistics", "statistics/all:$.model_stats*configured*"),
    Accepted(_COUNTS, "statistics/failed:*"),
    Accepted(_COUNTS, "statistics/all:*failing 1.*"),
    Accepted("unknown model in a load request", "repository/load_unknown:status", "404 *", "500 *"),
    Accepted("an unknown key in a load request", "repository/load_unknown_parameter:status", "400 *", "500 *"),
    Accepted(_LOAD, "repository/load_config_*:status", "*", "500 *"),
    Accepted(_LOAD, "repository/load_file_*:status", "400 *", "500 *"),
    Accepted(_LOAD, "repository/load_refused_*:status", "400 *", "500 *"),
    Accepted(_NO_OBJECT, "repository/index_after_refusals:$.unloaded 1.state", "'UNAVAILABLE'", "'READY'"),
    Accepted(_LOAD, "repository/override_*:status", "400 *", "500 *"),
    Accepted("a reload that fails", "repository/*.reason", "'the last reload failed*", "'(absent)'"),
    Accepted(
        "a model that exists only in its load request, in the index", "repository/*.brand_new 1", "*", "'(absent)'"
    ),
    Accepted("the index right after an unload", "*repository/index*.state", "'UN*'", "'UN*'"),
    Accepted("the index right after an unload", "*repository/index*.reason"),
    Accepted("readiness right after an unload", "repository/server_ready_with_unloaded:status", "200", "400"),
    *(
        Accepted(
            "readiness after a broken model was unloaded", f"repository/server_ready_after_{what}:status", "200", "400"
        )
        for what in ("broken", "refusals")
    ),
    *_OF_GENERATE,
    *_OF_GRPC,
    *_OF_SEQUENCES,
    *_OF_ENSEMBLES,
    *_OF_SETTINGS,
    *_OF_SHARED_MEMORY,
    *_OF_ACCESS,
    *_OF_OBSERVING,
)


def acceptance(difference: Difference) -> str:
    """The row that accepts a difference; "" when there is none."""
    return next((accepted.row for accepted in ACCEPTED if accepted.covers(difference)), "")
