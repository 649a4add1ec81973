"""Tables of the messages and RPCs of `inference.GRPCInferenceService`; `naiad_grpc.notation` parses them.

The messages of a model's configuration are not here: `naiad_config` has them.
"""

from collections.abc import Mapping

RPCS = (
    "ServerLive",
    "ServerReady",
    "ModelReady",
    "ServerMetadata",
    "ModelMetadata",
    "ModelInfer",
    "ModelStreamInfer",
    "ModelConfig",
    "ModelStatistics",
    "RepositoryIndex",
    "RepositoryModelLoad",
    "RepositoryModelUnload",
    "SystemSharedMemoryStatus",
    "SystemSharedMemoryRegister",
    "SystemSharedMemoryUnregister",
    "CudaSharedMemoryStatus",
    "CudaSharedMemoryRegister",
    "CudaSharedMemoryUnregister",
    "TraceSetting",
    "LogSettings",
)
"""Every RPC; its messages are named after it, but for the request of ModelStreamInfer."""

STREAMING = frozenset(("ModelStreamInfer",))
"""The RPCs that are a stream in both directions."""

REQUESTS: Mapping[str, str] = {name: f"{name}Request" for name in RPCS} | {"ModelStreamInfer": "ModelInferRequest"}
"""The message that each RPC takes."""

_MODEL = "string name = 1; string version = 2"
_TENSOR = "string name = 1; string datatype = 2; repeated int64 shape = 3"
_TENSOR_OF_INFERENCE = f"{_TENSOR}; map<string, InferParameter> parameters = 4; InferTensorContents contents = 5"
_COMPUTE = (
    "StatisticDuration compute_input = {}; StatisticDuration compute_infer = {}; StatisticDuration compute_output = {}"
)
_SETTING = "one of bool bool_param = 1; uint32 uint32_param = 2; string string_param = 3"
_REPOSITORY_MODEL = (
    "string repository_name = 1; string model_name = 2; map<string, ModelRepositoryParameter> parameters = 3"
)
_REGION = "string name = 1; string key = 2; uint64 offset = 3; uint64 byte_size = 4"

MESSAGES: Mapping[str, str] = {
    # Health and metadata
    "ServerLiveRequest": "",
    "ServerLiveResponse": "bool live = 1",
    "ServerReadyRequest": "",
    "ServerReadyResponse": "bool ready = 1",
    "ModelReadyRequest": _MODEL,
    "ModelReadyResponse": "bool ready = 1",
    "ServerMetadataRequest": "",
    "ServerMetadataResponse": "string name = 1; string version = 2; repeated string extensions = 3",
    "ModelMetadataRequest": _MODEL,
    "ModelMetadataResponse": (
        "string name = 1; repeated string versions = 2; string platform = 3; "
        "repeated ModelMetadataResponse.TensorMetadata inputs = 4; "
        "repeated ModelMetadataResponse.TensorMetadata outputs = 5"
    ),
    "ModelMetadataResponse.TensorMetadata": _TENSOR,
    # Inference
    "InferParameter": (
        "one of bool bool_param = 1; int64 int64_param = 2; string string_param = 3; double double_param = 4; "
        "uint64 uint64_param = 5"
    ),
    "InferTensorContents": (
        "repeated bool bool_contents = 1; repeated int32 int_contents = 2; repeated int64 int64_contents = 3; "
        "repeated uint32 uint_contents = 4; repeated uint64 uint64_contents = 5; repeated float fp32_contents = 6; "
        "repeated double fp64_contents = 7; repeated bytes bytes_contents = 8"
    ),
    "ModelInferRequest": (
        "string model_name = 1; string model_version = 2; string id = 3; map<string, InferParameter> parameters = 4; "
        "repeated ModelInferRequest.InferInputTensor inputs = 5; "
        "repeated ModelInferRequest.InferRequestedOutputTensor outputs = 6; repeated bytes raw_input_contents = 7"
    ),
    "ModelInferRequest.InferInputTensor": _TENSOR_OF_INFERENCE,
    "ModelInferRequest.InferRequestedOutputTensor": "string name = 1; map<string, InferParameter> parameters = 2",
    "ModelInferResponse": (
        "string model_name = 1; string model_version = 2; string id = 3; map<string, InferParameter> parameters = 4; "
        "repeated ModelInferResponse.InferOutputTensor outputs = 5; repeated bytes raw_output_contents = 6"
    ),
    "ModelInferResponse.InferOutputTensor": _TENSOR_OF_INFERENCE,
    "ModelStreamInferResponse": "string error_message = 1; ModelInferResponse infer_response = 2",
    # Configuration and statistics
    "ModelConfigRequest": _MODEL,
    "ModelConfigResponse": "ModelConfig config = 1",
    "ModelStatisticsRequest": _MODEL,
    "StatisticDuration": "uint64 count = 1; uint64 ns = 2",
    "InferStatistics": (
        "StatisticDuration success = 1; StatisticDuration fail = 2; StatisticDuration queue = 3; "
        f"{_COMPUTE.format(4, 5, 6)}; StatisticDuration cache_hit = 7; StatisticDuration cache_miss = 8"
    ),
    "InferResponseStatistics": (
        "StatisticDuration compute_infer = 1; StatisticDuration compute_output = 2; StatisticDuration success = 3; "
        "StatisticDuration fail = 4; StatisticDuration empty_response = 5; StatisticDuration cancel = 6"
    ),
    "InferBatchStatistics": f"uint64 batch_size = 1; {_COMPUTE.format(2, 3, 4)}",
    "MemoryUsage": "string type = 1; int64 id = 2; uint64 byte_size = 3",
    "ModelStatistics": (
        f"{_MODEL}; uint64 last_inference = 3; uint64 inference_count = 4; uint64 execution_count = 5; "
        "InferStatistics inference_stats = 6; repeated InferBatchStatistics batch_stats = 7; "
        "repeated MemoryUsage memory_usage = 8; map<string, InferResponseStatistics> response_stats = 9"
    ),
    "ModelStatisticsResponse": "repeated ModelStatistics model_stats = 1",
    # Model repository
    "ModelRepositoryParameter": (
        "one of bool bool_param = 1; int64 int64_param = 2; string string_param = 3; bytes bytes_param = 4"
    ),
    "RepositoryIndexRequest": "string repository_name = 1; bool ready = 2",
    "RepositoryIndexResponse": "repeated RepositoryIndexResponse.ModelIndex models = 1",
    "RepositoryIndexResponse.ModelIndex": f"{_MODEL}; string state = 3; string reason = 4",
    "RepositoryModelLoadRequest": _REPOSITORY_MODEL,
    "RepositoryModelLoadResponse": "",
    "RepositoryModelUnloadRequest": _REPOSITORY_MODEL,
    "RepositoryModelUnloadResponse": "",
    # Shared memory
    "SystemSharedMemoryStatusRequest": "string name = 1",
    "SystemSharedMemoryStatusResponse": "map<string, SystemSharedMemoryStatusResponse.RegionStatus> regions = 1",
    "SystemSharedMemoryStatusResponse.RegionStatus": _REGION,
    "SystemSharedMemoryRegisterRequest": _REGION,
    "SystemSharedMemoryRegisterResponse": "",
    "SystemSharedMemoryUnregisterRequest": "string name = 1",
    "SystemSharedMemoryUnregisterResponse": "",
    "CudaSharedMemoryStatusRequest": "string name = 1",
    "CudaSharedMemoryStatusResponse": "map<string, CudaSharedMemoryStatusResponse.RegionStatus> regions = 1",
    "CudaSharedMemoryStatusResponse.RegionStatus": "string name = 1; uint64 device_id = 2; uint64 byte_size = 3",
    "CudaSharedMemoryRegisterRequest": (
        "string name = 1; bytes raw_handle = 2; int64 device_id = 3; uint64 byte_size = 4"
    ),
    "CudaSharedMemoryRegisterResponse": "",
    "CudaSharedMemoryUnregisterRequest": "string name = 1",
    "CudaSharedMemoryUnregisterResponse": "",
    # Settings
    "TraceSettingRequest": "map<string, TraceSettingRequest.SettingValue> settings = 1; string model_name = 2",
    "TraceSettingRequest.SettingValue": "repeated string value = 1",
    "TraceSettingResponse": "map<string, TraceSettingResponse.SettingValue> settings = 1",
    "TraceSettingResponse.SettingValue": "repeated string value = 1",
    "LogSettingsRequest": "map<string, LogSettingsRequest.SettingValue> settings = 1",
    "LogSettingsRequest.SettingValue": _SETTING,
    "LogSettingsResponse": "map<string, LogSettingsResponse.SettingValue> settings = 1",
    "LogSettingsResponse.SettingValue": _SETTING,
}
"""Every message, a parent before what is nested in it."""
