"""The model configuration itself and its smaller parts.

Field names, numbers and types are those of `model_config.proto` of the Open Inference Protocol's Triton extensions.
"""

from collections.abc import Mapping
from dataclasses import field
from typing import Annotated, ClassVar

from naiad.config.fields import Wire, message
from naiad.config.optimization import ModelOptimizationPolicy
from naiad.config.placement import ModelInstanceGroup, ModelVersionPolicy
from naiad.config.scheduling import ModelDynamicBatching, ModelEnsembling
from naiad.config.sequences import ModelSequenceBatching
from naiad.config.tensors import BatchInput, BatchOutput, DataType, ModelInput, ModelOutput


@message
class ModelParameter:
    """`ModelParameter`."""

    string_value: Annotated[str, Wire(1)] = ""


@message
class WarmupInput:
    """`ModelWarmup.Input`."""

    PROTO: ClassVar[str] = "ModelWarmup.Input"

    data_type: Annotated[DataType, Wire(1)] = DataType.TYPE_INVALID
    dims: Annotated[tuple[int, ...], Wire(2, "int64")] = ()
    zero_data: Annotated[bool | None, Wire(3, oneof="input_data_type")] = None
    random_data: Annotated[bool | None, Wire(4, oneof="input_data_type")] = None
    input_data_file: Annotated[str | None, Wire(5, oneof="input_data_type")] = None


@message
class ModelWarmup:
    """`ModelWarmup`."""

    name: Annotated[str, Wire(1)] = ""
    batch_size: Annotated[int, Wire(2, "uint32")] = 0
    inputs: Annotated[Mapping[str, WarmupInput], Wire(3)] = field(default_factory=dict)
    count: Annotated[int, Wire(4, "uint32")] = 0


@message
class ModelOperations:
    """`ModelOperations`."""

    op_library_filename: Annotated[tuple[str, ...], Wire(1)] = ()


@message
class ModelTransactionPolicy:
    """`ModelTransactionPolicy`."""

    decoupled: Annotated[bool, Wire(1)] = False


@message
class RepositoryAgent:
    """`ModelRepositoryAgents.Agent`."""

    PROTO: ClassVar[str] = "ModelRepositoryAgents.Agent"

    name: Annotated[str, Wire(1)] = ""
    parameters: Annotated[Mapping[str, str], Wire(2)] = field(default_factory=dict)


@message
class ModelRepositoryAgents:
    """`ModelRepositoryAgents`."""

    agents: Annotated[tuple[RepositoryAgent, ...], Wire(1)] = ()


@message
class ModelResponseCache:
    """`ModelResponseCache`."""

    enable: Annotated[bool, Wire(1)] = False


@message
class MetricIdentifier:
    """`ModelMetrics.MetricControl.MetricIdentifier`."""

    PROTO: ClassVar[str] = "ModelMetrics.MetricControl.MetricIdentifier"

    family: Annotated[str, Wire(1)] = ""


@message
class HistogramOptions:
    """`ModelMetrics.MetricControl.HistogramOptions`."""

    PROTO: ClassVar[str] = "ModelMetrics.MetricControl.HistogramOptions"

    buckets: Annotated[tuple[float, ...], Wire(1, "double")] = ()


@message
class MetricControl:
    """`ModelMetrics.MetricControl`."""

    PROTO: ClassVar[str] = "ModelMetrics.MetricControl"

    metric_identifier: Annotated[MetricIdentifier | None, Wire(1)] = None
    histogram_options: Annotated[HistogramOptions | None, Wire(2, oneof="metric_options")] = None


@message
class ModelMetrics:
    """`ModelMetrics`."""

    metric_control: Annotated[tuple[MetricControl, ...], Wire(1)] = ()


@message
class ModelConfig:
    """`ModelConfig`."""

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
