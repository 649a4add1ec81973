"""Messages: `ModelConfig` itself, and its warmup, operations, response cache and metrics.

Field names, numbers and types are those of `model_config.proto` of the Open Inference Protocol's Triton extensions.
"""

from collections.abc import Mapping
from dataclasses import field
from typing import Annotated, ClassVar

from naiad_config.fields import Wire, message
from naiad_config.optimization import ModelOptimizationPolicy
from naiad_config.placement import ModelInstanceGroup, ModelVersionPolicy
from naiad_config.scheduling import ModelDynamicBatching, ModelEnsembling
from naiad_config.sequences import ModelSequenceBatching
from naiad_config.tensors import BatchInput, BatchOutput, DataType, ModelInput, ModelOutput


@message
class ModelParameter:
    """A value that the backend or the model's own code reads by its key."""

    string_value: Annotated[str, Wire(1)] = ""


@message
class WarmupInput:
    """One tensor of a warmup sample: zeros, random values, or a file in the model's `warmup` folder."""

    PROTO: ClassVar[str] = "ModelWarmup.Input"

    data_type: Annotated[DataType, Wire(1)] = DataType.TYPE_INVALID
    dims: Annotated[tuple[int, ...], Wire(2, "int64")] = ()
    zero_data: Annotated[bool | None, Wire(3, oneof="input_data_type")] = None
    random_data: Annotated[bool | None, Wire(4, oneof="input_data_type")] = None
    input_data_file: Annotated[str | None, Wire(5, oneof="input_data_type")] = None


@message
class ModelWarmup:
    """Requests that every instance answers before the version is ready: `batch_size` requests at once, `count` times.

    A batch size of 0 skips the sample; a count of 0 means 1.
    """

    name: Annotated[str, Wire(1)] = ""
    batch_size: Annotated[int, Wire(2, "uint32")] = 0
    inputs: Annotated[Mapping[str, WarmupInput], Wire(3)] = field(default_factory=dict)
    count: Annotated[int, Wire(4, "uint32")] = 0


@message
class ModelOperations:
    """Libraries with operations of its own that the model needs."""

    op_library_filename: Annotated[tuple[str, ...], Wire(1)] = ()


@message
class ModelTransactionPolicy:
    """Whether a request may get any number of responses (`decoupled`) or gets exactly one."""

    decoupled: Annotated[bool, Wire(1)] = False


@message
class RepositoryAgent:
    """Something that looks at the model's files, or changes them, before they are loaded."""

    PROTO: ClassVar[str] = "ModelRepositoryAgents.Agent"

    name: Annotated[str, Wire(1)] = ""
    parameters: Annotated[Mapping[str, str], Wire(2)] = field(default_factory=dict)


@message
class ModelRepositoryAgents:
    """The agents to run, in this order."""

    agents: Annotated[tuple[RepositoryAgent, ...], Wire(1)] = ()


@message
class ModelResponseCache:
    """Whether equal requests may be answered from the server's cache."""

    enable: Annotated[bool, Wire(1)] = False


@message
class MetricIdentifier:
    """The family of metrics that a control is about."""

    PROTO: ClassVar[str] = "ModelMetrics.MetricControl.MetricIdentifier"

    family: Annotated[str, Wire(1)] = ""


@message
class HistogramOptions:
    """The upper bounds of a histogram's buckets, ascending."""

    PROTO: ClassVar[str] = "ModelMetrics.MetricControl.HistogramOptions"

    buckets: Annotated[tuple[float, ...], Wire(1, "double")] = ()


@message
class MetricControl:
    """How one family of metrics is kept for this model."""

    PROTO: ClassVar[str] = "ModelMetrics.MetricControl"

    metric_identifier: Annotated[MetricIdentifier | None, Wire(1)] = None
    histogram_options: Annotated[HistogramOptions | None, Wire(2, oneof="metric_options")] = None


@message
class ModelMetrics:
    """Settings for the metrics of this model."""

    metric_control: Annotated[tuple[MetricControl, ...], Wire(1)] = ()


@message
class ModelConfig:
    """Everything that is configured for a model: what it takes and gives, who executes it, where, and in which batches.

    `max_batch_size` 0 says that the model has no batch dimension. At most one of the three schedulers is set; without
    one, requests are executed one by one as they came. Maps and tuples are never changed in place.
    """

    name: Annotated[str, Wire(1)] = ""
    platform: Annotated[str, Wire(2)] = ""
    backend: Annotated[str, Wire(17)] = ""
    runtime: Annotated[str, Wire(25)] = ""
    version_policy: Annotated[ModelVersionPolicy | None, Wire(3)] = None
    max_batch_size: Annotated[int, Wire(4, "int32")] = 0
    input: Annotated[tuple[ModelInput, ...], Wire(5)] = ()
    output: Annotated[tuple[ModelOutput, ...], Wire(6)] = ()
    batch_input: Annotated[tuple[BatchInput, ...], Wire(20)] = ()
    batch_output: Annotated[tuple[BatchOutput, ...], Wire(21)] = ()
    optimization: Annotated[ModelOptimizationPolicy | None, Wire(12)] = None
    dynamic_batching: Annotated[ModelDynamicBatching | None, Wire(11, oneof="scheduling_choice")] = None
    sequence_batching: Annotated[ModelSequenceBatching | None, Wire(13, oneof="scheduling_choice")] = None
    ensemble_scheduling: Annotated[ModelEnsembling | None, Wire(15, oneof="scheduling_choice")] = None
    instance_group: Annotated[tuple[ModelInstanceGroup, ...], Wire(7)] = ()
    default_model_filename: Annotated[str, Wire(8)] = ""
    cc_model_filenames: Annotated[Mapping[str, str], Wire(9)] = field(default_factory=dict)
    metric_tags: Annotated[Mapping[str, str], Wire(10)] = field(default_factory=dict)
    parameters: Annotated[Mapping[str, ModelParameter], Wire(14)] = field(default_factory=dict)
    model_warmup: Annotated[tuple[ModelWarmup, ...], Wire(16)] = ()
    model_operations: Annotated[ModelOperations | None, Wire(18)] = None
    model_transaction_policy: Annotated[ModelTransactionPolicy | None, Wire(19)] = None
    model_repository_agents: Annotated[ModelRepositoryAgents | None, Wire(23)] = None
    response_cache: Annotated[ModelResponseCache | None, Wire(24)] = None
    model_metrics: Annotated[ModelMetrics | None, Wire(26)] = None
