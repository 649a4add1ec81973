"""Metric families: name, kind and help of every metric of models and of the machine.

Those that start with `nv_` have the names and labels of Triton's metrics; the others are ours.
"""

from dataclasses import dataclass

from naiad_kit.metrics import MetricKind
from naiad_kit.model_metrics import line_names


@dataclass(frozen=True, slots=True)
class FamilyText:
    """What a family has beside its samples."""

    name: str
    kind: MetricKind
    help: str


_NOT_CACHED = "without those that a cache answered"

EXECUTED = (
    FamilyText("nv_inference_request_success", "counter", "Requests that were answered, of any batch size"),
    FamilyText("nv_inference_count", "counter", f"Inferences, the batch sizes added up, {_NOT_CACHED}"),
    FamilyText("nv_inference_exec_count", "counter", f"Executions of the model, one per batch, {_NOT_CACHED}"),
)

FAILURE = FamilyText("nv_inference_request_failure", "counter", "Requests that failed, of any batch size, by reason")

_EACH = "charged to every request of a batch"

LATENCY_COUNTERS = (
    FamilyText("nv_inference_request_duration_us", "counter", "Microseconds from arrival to answer, added up"),
    FamilyText("nv_inference_queue_duration_us", "counter", "Microseconds that requests waited in a queue, added up"),
    FamilyText(
        "nv_inference_compute_input_duration_us", "counter", f"Microseconds of preparing inputs, {_EACH}, added up"
    ),
    FamilyText("nv_inference_compute_infer_duration_us", "counter", f"Microseconds of inferring, {_EACH}, added up"),
    FamilyText(
        "nv_inference_compute_output_duration_us", "counter", f"Microseconds of taking outputs, {_EACH}, added up"
    ),
)
"""In the order of the phases."""

_LAST_MINUTE = "quantiles of the last minute, microseconds"

LATENCY_SUMMARIES = (
    FamilyText("nv_inference_request_summary_us", "summary", f"From arrival to answer: {_LAST_MINUTE}"),
    FamilyText("nv_inference_queue_summary_us", "summary", f"Waiting in a queue: {_LAST_MINUTE}"),
    FamilyText("nv_inference_compute_input_summary_us", "summary", f"Preparing inputs: {_LAST_MINUTE}"),
    FamilyText("nv_inference_compute_infer_summary_us", "summary", f"Inferring: {_LAST_MINUTE}"),
    FamilyText("nv_inference_compute_output_summary_us", "summary", f"Taking outputs: {_LAST_MINUTE}"),
)
"""In the order of the phases; with summary_latencies=true."""

FIRST_RESPONSE = FamilyText(
    "nv_inference_first_response_histogram_ms", "histogram", "Milliseconds from arrival to the first response"
)
"""With histogram_latencies=true."""

LATENCY_HISTOGRAMS = (
    FamilyText("naiad_request_duration_seconds", "histogram", "Seconds from arrival to answer"),
    FamilyText("naiad_queue_duration_seconds", "histogram", "Seconds that a request waited in a queue"),
    FamilyText("naiad_compute_input_duration_seconds", "histogram", f"Seconds of preparing inputs, {_EACH}"),
    FamilyText("naiad_compute_infer_duration_seconds", "histogram", f"Seconds of inferring, {_EACH}"),
    FamilyText("naiad_compute_output_duration_seconds", "histogram", f"Seconds of taking outputs, {_EACH}"),
)
"""In the order of the phases."""

BATCH_SIZE = FamilyText("naiad_batch_size", "histogram", "Items of an execution, those of its requests together")

WHOLE = (
    FamilyText("nv_inference_pending_request_count", "gauge", "Requests that wait for their execution right now"),
    FamilyText("nv_model_load_duration_secs", "gauge", "Seconds that the last load of the model took"),
    FamilyText("naiad_queue_depth", "gauge", "Requests in the queue right now"),
    FamilyText("naiad_requests_in_flight", "gauge", "Requests that wait, execute or stream right now"),
)
"""Of a version as a whole, each without further labels."""

BATCHES_CLOSED = FamilyText("naiad_batches_closed_total", "counter", "Batches by the reason for which they were closed")
CANCELLED = FamilyText(
    "naiad_requests_cancelled_total", "counter", "Requests whose caller left, by what they did by then"
)
INSTANCE_STATE = FamilyText(
    "naiad_instance_state", "gauge", "1 for the state that the instance is in, 0 for the others"
)
INSTANCE_BUSY = FamilyText(
    "naiad_instance_busy_seconds", "gauge", "Seconds for which the instance has executed its batch, 0 when idle"
)

_LOOKUP = "of the response cache for this model"

SEQUENCES_LIVE = FamilyText(
    "naiad_sequences_live", "gauge", "Sequences that instances have had requests of and that are not over"
)
SEQUENCES_WAITING = FamilyText("naiad_sequences_backlog", "gauge", "Sequences that wait for a slot right now")

CACHE_COUNTERS = (
    FamilyText("nv_cache_num_hits_per_model", "counter", f"Hits {_LOOKUP}"),
    FamilyText("nv_cache_num_misses_per_model", "counter", f"Misses {_LOOKUP}"),
    FamilyText("nv_cache_hit_duration_per_model", "counter", "Microseconds of lookups that were hits, added up"),
    FamilyText(
        "nv_cache_miss_duration_per_model",
        "counter",
        "Microseconds of lookups that were misses, and of keeping answers",
    ),
)
"""Of a version that the response cache answers for."""

CACHE_SUMMARIES = (
    FamilyText("nv_cache_hit_summary_per_model", "summary", f"Lookups that were hits: {_LAST_MINUTE}"),
    FamilyText("nv_cache_miss_summary_per_model", "summary", f"Lookups that were misses, with keeping: {_LAST_MINUTE}"),
)
"""Of a version that the response cache answers for; with summary_latencies=true."""

CPU = (
    FamilyText("nv_cpu_utilization", "gauge", "How busy the processors are [0.0 - 1.0]"),
    FamilyText("nv_cpu_memory_total_bytes", "gauge", "Memory of the machine, bytes"),
    FamilyText("nv_cpu_memory_used_bytes", "gauge", "Memory of the machine that is not available any more, bytes"),
)

PROCESS_MEMORY = FamilyText("naiad_process_memory_bytes", "gauge", "Resident memory of a process of the server, bytes")

PINNED_MEMORY = (
    FamilyText("nv_pinned_memory_pool_total_bytes", "gauge", "Size of the pool of pinned memory, bytes"),
    FamilyText("nv_pinned_memory_pool_used_bytes", "gauge", "Pinned memory that is taken from the pool, bytes"),
)

GPU = (
    FamilyText("nv_gpu_utilization", "gauge", "How busy the GPU is [0.0 - 1.0]"),
    FamilyText("nv_gpu_memory_total_bytes", "gauge", "Memory of the GPU, bytes"),
    FamilyText("nv_gpu_memory_used_bytes", "gauge", "Memory of the GPU that is in use, bytes"),
    FamilyText("nv_gpu_power_usage", "gauge", "Power that the GPU draws, watts"),
    FamilyText("nv_gpu_power_limit", "gauge", "Power that the GPU may draw, watts"),
    FamilyText("nv_energy_consumption", "counter", "Energy that the GPU has used since its driver was loaded, joules"),
)

FAMILIES = (
    *EXECUTED,
    FAILURE,
    *WHOLE,
    *LATENCY_COUNTERS,
    *LATENCY_SUMMARIES,
    FIRST_RESPONSE,
    *LATENCY_HISTOGRAMS,
    BATCH_SIZE,
    BATCHES_CLOSED,
    CANCELLED,
    INSTANCE_STATE,
    INSTANCE_BUSY,
    SEQUENCES_LIVE,
    SEQUENCES_WAITING,
    *CACHE_COUNTERS,
    *CACHE_SUMMARIES,
    *CPU,
    PROCESS_MEMORY,
    *PINNED_MEMORY,
    *GPU,
)
"""Every family, in the order of the page."""

RESERVED = frozenset(line for family in FAMILIES for line in line_names(family.name, family.kind))
"""The names that metrics of models cannot have."""
