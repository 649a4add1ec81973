"""Which test holds what: rows for each option of Triton's command line, RPC, HTTP route and name of `pb_utils`.

A row names the test that holds the effect, beyond that the option is taken or the call answered. What the field's own
clients send to every call is in `tests/end_to_end/clients`; what Triton answers to the same, in `tests/differential`.
"""

from collections.abc import Mapping, Sequence

_UNUSED = "core/cli/tests/test_triton_options.py::test_an_option_that_changes_nothing_says_so_and_why"
_GRPC_CHANNEL = "frontends/grpc/tests/transport/test_connections.py::test_options_come_to_channel_arguments_of_grpcio"
_GRPC_TLS = "frontends/grpc/tests/transport/test_tls.py::test_clients_that_trust_the_root_are_served_over_tls"
_OLD_TRACE = "plugins/tracing/tests/test_trace_options.py::test_older_options_still_count_with_a_warning"
_SHARED_PORT = "tests/test_serve.py::test_two_servers_share_ports_where_both_options_say_so"
_STORE = "tests/test_triton_options.py::test_a_command_line_with_every_option_of_triton_starts_a_server"
_STRICT = (
    "core/cli/tests/test_triton_options.py::test_strict_model_config_is_the_older_name_of_disable_auto_complete_config"
)
_CALLS = "tests/end_to_end/clients/test_all_parameters.py::test_every_call_takes_all_that_it_can_be_given"

OPTIONS: Mapping[str, str] = {
    "allow-cpu-metrics": "core/kernel/tests/kernel/test_machine_metrics.py::"
    "test_the_machine_is_reported_unless_that_is_switched_off",
    "allow-gpu-metrics": "frontends/metrics/tests/test_options.py::"
    "test_switches_and_the_interval_have_options_of_their_own",
    "allow-grpc": "frontends/grpc/tests/server/test_frontend.py::test_it_can_be_switched_off",
    "allow-http": "frontends/http/tests/server/test_frontend.py::test_it_can_be_switched_off",
    "allow-metrics": "frontends/metrics/tests/test_frontend.py::test_without_metrics_no_port_is_open",
    "allow-sagemaker": _UNUSED,
    "allow-vertex-ai": _UNUSED,
    "backend-config": "core/kernel/tests/kernel/test_loading.py::test_a_backend_gets_all_it_needs_to_load",
    "backend-directory": "plugins/custom/tests/test_python_backends.py::"
    "test_one_backend_serves_many_models_each_with_its_own_files",
    "buffer-manager-thread-count": _UNUSED,
    "cache-config": "tests/end_to_end/cache/test_cached_answers.py::"
    "test_an_equal_request_is_answered_from_the_cache_whatever_it_is_sent_as",
    "cache-directory": _UNUSED,
    "cuda-memory-pool-byte-size": _UNUSED,
    "cuda-virtual-address-size": _UNUSED,
    "disable-auto-complete-config": "core/kernel/tests/kernel/test_loading.py::test_completion_can_be_turned_off",
    "enable-peer-access": _UNUSED,
    "exit-on-error": "tests/test_serve.py::test_a_server_that_tolerates_failures_serves_the_other_models",
    "exit-timeout-secs": "tests/test_serve.py::test_a_model_that_never_answers_holds_the_server_no_longer_than_it_may",
    "grpc-address": "frontends/grpc/tests/server/test_access.py::test_the_client_comes_over_a_unix_socket",
    "grpc-header-forward-pattern": "frontends/grpc/tests/inference/test_unary.py::"
    "test_metadata_that_is_forwarded_becomes_parameters",
    "grpc-http2-max-ping-strikes": _GRPC_CHANNEL,
    "grpc-http2-max-pings-without-data": _GRPC_CHANNEL,
    "grpc-http2-min-recv-ping-interval-without-data": _GRPC_CHANNEL,
    "grpc-infer-allocation-pool-size": _UNUSED,
    "grpc-infer-response-compression-level": "frontends/grpc/tests/server/test_access.py::"
    "test_messages_may_be_compressed_both_ways",
    "grpc-infer-thread-count": _UNUSED,
    "grpc-keepalive-permit-without-calls": "frontends/grpc/tests/transport/test_connections.py::"
    "test_a_client_that_is_gone_without_a_word_is_noticed",
    "grpc-keepalive-time": "frontends/grpc/tests/transport/test_connections.py::"
    "test_a_client_that_is_gone_without_a_word_is_noticed",
    "grpc-keepalive-timeout": "frontends/grpc/tests/transport/test_connections.py::"
    "test_a_client_that_is_gone_without_a_word_is_noticed",
    "grpc-max-connection-age": "frontends/grpc/tests/transport/test_connections.py::"
    "test_a_connection_of_some_age_is_ended",
    "grpc-max-connection-age-grace": _GRPC_CHANNEL,
    "grpc-max-response-pool-size": _UNUSED,
    "grpc-port": "tests/test_serve.py::test_every_frontend_says_where_it_listens",
    "grpc-restricted-protocol": "tests/end_to_end/test_restricted_apis.py::"
    "test_the_rpcs_of_a_group_need_its_metadata_and_no_other",
    "grpc-root-cert": _GRPC_TLS,
    "grpc-server-cert": _GRPC_TLS,
    "grpc-server-key": _GRPC_TLS,
    "grpc-use-ssl": _GRPC_TLS,
    "grpc-use-ssl-mutual": _GRPC_TLS,
    "host-policy": _UNUSED,
    "http-address": "frontends/http/tests/server/test_frontend.py::test_it_says_where_it_listens",
    "http-header-forward-pattern": "tests/end_to_end/test_forwarded_headers.py::"
    "test_a_forwarded_header_keeps_the_blanks_at_its_end",
    "http-max-input-size": "frontends/http/tests/connection/test_ends.py::"
    "test_too_large_a_body_is_refused_and_its_bytes_go_by_unread",
    "http-port": "tests/test_serve.py::test_an_address_that_is_taken_ends_the_server_with_the_option_to_change",
    "http-restricted-api": "tests/end_to_end/test_restricted_apis.py::"
    "test_the_paths_of_a_group_need_its_header_and_no_other",
    "http-thread-count": _UNUSED,
    "id": "core/kernel/tests/kernel/test_readiness.py::test_a_server_tells_who_it_is",
    "load-model": "core/kernel/tests/kernel/test_control.py::test_explicit_control_starts_with_the_models_asked_for",
    "log-error": "core/cli/tests/test_logs.py::test_each_switch_silences_its_own_level",
    "log-file": "tests/test_serve.py::test_a_log_file_takes_all_lines",
    "log-format": "core/cli/tests/test_logs.py::test_the_iso_format_is_that_of_triton",
    "log-info": "core/cli/tests/test_logs.py::test_each_switch_silences_its_own_level",
    "log-verbose": "core/cli/tests/test_logs.py::test_verbosity_adds_lines",
    "log-warning": "core/cli/tests/test_logs.py::test_each_switch_silences_its_own_level",
    "metrics-address": "frontends/metrics/tests/test_frontend.py::"
    "test_metrics_are_served_where_http_is_unless_another_address_is_given",
    "metrics-config": "core/kernel/tests/kernel/test_chosen_metrics.py::"
    "test_summaries_and_the_first_response_are_reported_when_they_are_asked_for",
    "metrics-interval-ms": "frontends/metrics/tests/test_machine.py::"
    "test_the_machine_is_not_looked_at_more_often_than_the_interval_says",
    "metrics-port": "frontends/metrics/tests/test_frontend.py::"
    "test_a_port_that_is_taken_is_reported_with_the_option_that_changes_it",
    "min-supported-compute-capability": _UNUSED,
    "model-config-name": "core/kernel/tests/kernel/test_loading.py::test_another_configuration_can_be_chosen_by_name",
    "model-control-mode": "core/kernel/tests/kernel/test_control.py::test_only_explicit_control_loads_and_unloads",
    "model-load-gpu-limit": _UNUSED,
    "model-load-retry-count": "core/kernel/tests/kernel/test_loading.py::"
    "test_a_failed_load_is_tried_again_as_often_as_the_option_says",
    "model-load-thread-count": "core/kernel/tests/kernel/test_instances.py::"
    "test_models_load_at_the_same_time_as_many_as_the_option_says",
    "model-namespacing": _UNUSED,
    "model-repository": "core/kernel/tests/kernel/test_index.py::"
    "test_a_repository_that_is_named_twice_is_one_repository",
    "model-store": _STORE,
    "pinned-memory-pool-byte-size": _UNUSED,
    "rate-limit": "tests/end_to_end/test_rate_limiter.py::"
    "test_models_of_priorities_1_and_2_execute_as_2_to_1_while_both_have_work",
    "rate-limit-resource": "tests/end_to_end/test_rate_limiter.py::"
    "test_executions_wait_for_what_those_of_other_models_hold",
    "repoagent-directory": _UNUSED,
    "repository-poll-secs": "core/kernel/tests/kernel/test_polling.py::"
    "test_the_server_looks_again_after_the_time_of_its_option",
    "response-cache-byte-size": "plugins/cache/tests/test_options.py::test_the_older_option_is_the_local_cache",
    "reuse-grpc-port": _SHARED_PORT,
    "reuse-http-port": _SHARED_PORT,
    "sagemaker-port": _UNUSED,
    "sagemaker-safe-port-range": _UNUSED,
    "sagemaker-thread-count": _UNUSED,
    "strict-model-config": _STRICT,
    "strict-readiness": "core/kernel/tests/kernel/test_readiness.py::"
    "test_without_strictness_the_state_of_the_server_alone_counts",
    "trace-config": "tests/end_to_end/test_tracing.py::"
    "test_a_file_tells_all_of_every_request_when_the_server_has_ended",
    "trace-count": _OLD_TRACE,
    "trace-file": _OLD_TRACE,
    "trace-level": _OLD_TRACE,
    "trace-log-frequency": _OLD_TRACE,
    "trace-rate": _OLD_TRACE,
    "vertex-ai-default-model": _UNUSED,
    "vertex-ai-port": _UNUSED,
    "vertex-ai-thread-count": _UNUSED,
    "allow-client-shm": "plugins/shared-memory/tests/test_system_regions.py::"
    "test_clients_may_not_register_unless_the_option_says_so",
}

RPCS: Mapping[str, str] = {
    "ServerLive": _CALLS,
    "ServerReady": _CALLS,
    "ModelReady": "frontends/grpc/tests/service/test_health.py::test_a_model_that_is_not_there_is_not_ready",
    "ServerMetadata": _CALLS,
    "ModelMetadata": _CALLS,
    "ModelInfer": "tests/end_to_end/clients/test_kinds.py::test_every_kind_of_model_adds_and_subtracts",
    "ModelStreamInfer": "frontends/grpc/tests/server/test_client.py::test_a_stream_carries_many_requests",
    "ModelConfig": _CALLS,
    "ModelStatistics": "frontends/grpc/tests/service/test_statistics.py::test_all_counters_are_reported",
    "RepositoryIndex": "frontends/grpc/tests/service/test_repository.py::"
    "test_the_index_has_every_version_and_its_state",
    "RepositoryModelLoad": "frontends/grpc/tests/service/test_repository.py::"
    "test_a_load_may_bring_a_configuration_and_files",
    "RepositoryModelUnload": "frontends/grpc/tests/service/test_repository.py::"
    "test_an_unload_may_take_dependents_along",
    "SystemSharedMemoryStatus": _CALLS,
    "SystemSharedMemoryRegister": _CALLS,
    "SystemSharedMemoryUnregister": _CALLS,
    "CudaSharedMemoryStatus": "frontends/grpc/tests/service/test_shared_memory.py::"
    "test_the_status_tells_cuda_regions_by_name",
    "CudaSharedMemoryRegister": "frontends/grpc/tests/service/test_shared_memory.py::"
    "test_a_cuda_region_is_registered_with_its_raw_handle",
    "CudaSharedMemoryUnregister": _CALLS,
    "TraceSetting": _CALLS,
    "LogSettings": "frontends/grpc/tests/service/test_settings.py::test_log_settings_are_changed_with_their_types",
}

_SHARED_MEMORY = (
    "frontends/http/tests/server/test_shared_memory.py::test_a_wrong_registration_is_refused_with_what_is_wrong"
)
_EVENTS = "frontends/http/tests/connection/test_generate.py::test_responses_are_events_of_a_chunked_stream"

_DESCRIPTIONS = "frontends/http/tests/server/test_descriptions.py::test_{}"
PATHS: Mapping[str, str] = {
    "/v2": _CALLS,
    "/": _DESCRIPTIONS.format("the_root_is_json_for_programs_and_a_page_for_browsers"),
    "/docs": _DESCRIPTIONS.format("every_model_is_linked_from_the_page_and_has_one"),
    "/docs/{model}": _DESCRIPTIONS.format("every_model_is_linked_from_the_page_and_has_one"),
    "/v2/models/{model}/openapi.json": _DESCRIPTIONS.format("a_request_made_of_a_models_description_is_answered"),
    "/openapi.json": "frontends/http/tests/server/test_openapi.py::test_it_is_served_and_its_paths_answer_as_it_says",
    "/v2/health/live": "frontends/http/tests/server/test_routes.py::test_health_answers_have_their_bodies",
    "/v2/health/ready": "tests/test_serve.py::test_a_server_without_models_is_ready_where_they_can_come_later",
    "/v2/models/{model}": _CALLS,
    "/v2/models/{model}/ready": "tests/end_to_end/test_dying_models.py::"
    "test_a_worker_that_dies_is_replaced_and_visible_meanwhile",
    "/v2/models/{model}/config": _CALLS,
    "/v2/models/stats": "core/kernel/tests/kernel/test_statistics.py::"
    "test_statistics_are_reported_for_all_models_one_or_one_version",
    "/v2/models/{model}/stats": "tests/end_to_end/test_metrics.py::test_counters_equal_the_statistics",
    "/v2/models/{model}/infer": "tests/end_to_end/clients/test_kinds.py::test_every_kind_of_model_adds_and_subtracts",
    "/v2/models/{model}/generate": "frontends/http/tests/connection/test_generate.py::"
    "test_generate_answers_with_its_one_response",
    "/v2/models/{model}/generate_stream": _EVENTS,
    "/v2/models/{model}/trace/setting": "tests/end_to_end/test_tracing.py::"
    "test_a_running_server_begins_and_ends_to_trace",
    "/v2/trace/setting": "tests/end_to_end/test_tracing.py::test_a_running_server_begins_and_ends_to_trace",
    "/v2/logging": "tests/end_to_end/test_log_settings.py::test_what_a_model_logs_follows_the_settings",
    "/v2/repository/index": "frontends/http/tests/server/test_routes.py::"
    "test_the_index_tells_states_and_may_be_only_of_what_is_ready",
    "/v2/repository/models/{model}/load": _CALLS,
    "/v2/repository/models/{model}/unload": _CALLS,
    "/v2/systemsharedmemory/status": _CALLS,
    "/v2/systemsharedmemory/unregister": _CALLS,
    "/v2/systemsharedmemory/region/{region}/status": _CALLS,
    "/v2/systemsharedmemory/region/{region}/register": _SHARED_MEMORY,
    "/v2/systemsharedmemory/region/{region}/unregister": _CALLS,
    "/v2/cudasharedmemory/status": _CALLS,
    "/v2/cudasharedmemory/unregister": _CALLS,
    "/v2/cudasharedmemory/region/{region}/status": _CALLS,
    "/v2/cudasharedmemory/region/{region}/register": _SHARED_MEMORY,
    "/v2/cudasharedmemory/region/{region}/unregister": _CALLS,
}

MODEL_API: Mapping[str, Sequence[str]] = {
    "plugins/custom/tests/test_triton_request.py::test_a_received_request_tells_everything": (
        "InferenceRequest.inputs",
        "InferenceRequest.request_id",
        "InferenceRequest.correlation_id",
        "InferenceRequest.flags",
        "InferenceRequest.timeout",
        "InferenceRequest.parameters",
        "InferenceRequest.requested_output_names",
    ),
    "plugins/custom/tests/test_triton_request.py::test_a_request_whose_caller_has_left_is_cancelled": (
        "InferenceRequest.is_cancelled",
    ),
    "plugins/custom/tests/test_triton_request.py::test_the_trace_of_a_request_gives_its_context": (
        "InferenceRequest.trace",
        "InferenceTrace.get_context",
    ),
    "plugins/custom/tests/test_triton_request.py::test_a_request_can_be_made_by_a_model": (
        "InferenceRequest",
        "InferenceRequest.preferred_memory",
        "PreferredMemory.device_id",
        "TRITONSERVER_MEMORY_GPU",
    ),
    "plugins/custom/tests/test_triton_request.py::test_an_input_is_found_by_name": ("get_input_tensor_by_name",),
    "plugins/custom/tests/test_triton_request.py::test_a_response_tells_its_outputs_and_parameters": (
        "InferenceResponse",
        "InferenceResponse.output_tensors",
        "InferenceResponse.has_error",
        "InferenceResponse.error",
        "InferenceResponse.parameters",
        "get_output_tensor_by_name",
    ),
    "plugins/custom/tests/test_triton_request.py::test_an_error_is_internal_unless_it_says_otherwise": (
        "TritonError",
        "TritonError.message",
        "TritonError.code",
    ),
    "plugins/custom/tests/test_triton_request.py::test_every_code_reaches_the_caller": (
        "TritonError.UNKNOWN",
        "TritonError.INTERNAL",
        "TritonError.NOT_FOUND",
        "TritonError.INVALID_ARG",
        "TritonError.UNAVAILABLE",
        "TritonError.UNSUPPORTED",
        "TritonError.ALREADY_EXISTS",
        "TritonError.CANCELLED",
    ),
    "plugins/custom/tests/test_triton_request.py::test_a_preference_for_no_memory_is_refused": (
        "PreferredMemory",
        "MemoryType",
    ),
    "plugins/custom/tests/test_triton_sender.py::test_a_request_has_one_sender": (
        "InferenceRequest.get_response_sender",
    ),
    "plugins/custom/tests/test_triton_sender.py::test_nothing_is_sent_after_the_final_flag": (
        "InferenceResponseSender",
        "InferenceResponseSender.send",
    ),
    "plugins/custom/tests/test_triton_decoupled.py::test_a_caller_that_leaves_is_seen_by_request_and_sender": (
        "InferenceResponseSender.is_cancelled",
    ),
    "plugins/custom/tests/test_triton_decoupled.py::test_auto_complete_config_may_make_a_model_decoupled": (
        "using_decoupled_model_transaction_policy",
    ),
    "plugins/custom/tests/test_triton_rescheduling.py::test_a_rescheduled_request_has_no_response": (
        "InferenceRequest.set_release_flags",
    ),
    "plugins/custom/tests/test_triton_calls.py::test_exec_gives_the_response_of_another_model": (
        "InferenceRequest.exec",
    ),
    "plugins/custom/tests/test_triton_calls.py::test_async_execs_that_are_gathered_go_on_at_the_same_time": (
        "InferenceRequest.async_exec",
    ),
    "plugins/custom/tests/test_triton_calls.py::test_the_iterator_has_next_and_cancel": (
        "ResponseIterator.next",
        "ResponseIterator.cancel",
    ),
    "plugins/custom/tests/test_triton_functions.py::test_datatypes_go_between_names_numbers_and_numpy": (
        "TRITON_STRING_TO_NUMPY",
        "triton_string_to_numpy",
        "triton_to_numpy_type",
        "numpy_to_triton_type",
    ),
    "plugins/custom/tests/test_triton_functions.py::test_strings_survive_serialization": (
        "serialize_byte_tensor",
        "deserialize_bytes_tensor",
    ),
    "plugins/custom/tests/test_triton_functions.py::test_a_configuration_is_looked_into_by_name": (
        "get_input_config_by_name",
        "get_output_config_by_name",
    ),
    "plugins/custom/tests/test_triton_functions.py::test_constants_have_the_protocols_values": (
        "TRITONSERVER_REQUEST_FLAG_SEQUENCE_START",
        "TRITONSERVER_REQUEST_FLAG_SEQUENCE_END",
        "TRITONSERVER_RESPONSE_COMPLETE_FINAL",
        "TRITONSERVER_REQUEST_RELEASE_ALL",
        "TRITONSERVER_REQUEST_RELEASE_RESCHEDULE",
    ),
    "plugins/custom/tests/test_triton_functions.py::test_contradicting_a_configuration_is_refused": (
        "ModelConfig",
        "ModelConfig.add_output",
        "ModelConfig.set_dynamic_batching",
        "ModelConfig.set_max_batch_size",
    ),
    "plugins/custom/tests/test_triton_functions.py::test_a_written_input_is_completed": (
        "ModelConfig.add_input",
        "ModelConfig.as_dict",
    ),
    "plugins/custom/tests/test_triton_functions.py::test_transactions_are_set_once": (
        "ModelConfig.set_model_transaction_policy",
    ),
    "plugins/custom/tests/test_triton_life.py::test_a_model_finds_its_own_folder": ("get_model_dir",),
    "plugins/custom/tests/test_metrics.py::test_a_family_is_made_by_a_model": ("MetricFamily",),
    "plugins/custom/tests/test_metrics.py::test_what_a_kind_does_not_have_is_refused": (
        "Metric.increment",
        "Metric.set",
        "Metric.observe",
        "Metric.value",
        "MetricFamily.Metric",
    ),
    "plugins/custom/tests/test_triton_model.py::test_an_exception_reaches_the_caller_with_its_type_and_text": (
        "TritonModelException",
    ),
    "plugins/custom/tests/test_triton_model_control.py::test_models_are_loaded_and_unloaded_in_explicit_mode_alone": (
        "load_model",
        "unload_model",
    ),
    "tests/end_to_end/python_models/test_bytes_arguments.py::test_names_and_versions_of_model_control_may_be_bytes": (
        "is_model_ready",
    ),
    "plugins/custom/tests/test_triton_tensor.py::test_an_array_keeps_its_datatype_and_memory": (
        "Tensor",
        "Tensor.name",
        "Tensor.shape",
        "Tensor.triton_dtype",
        "Tensor.is_cpu",
        "Tensor.as_numpy",
    ),
    "plugins/custom/tests/test_triton_tensor.py::test_dlpack_goes_both_ways": (
        "Tensor.from_dlpack",
        "Tensor.to_dlpack",
    ),
    "tests/end_to_end/python_models/test_pb_utils.py::test_a_model_uses_what_the_module_has": (
        "InferenceRequest.set_flags",
        "InferenceTrace",
        "LogLevel",
        "Logger",
        "Logger.LogLevel",
        "Logger.INFO",
        "Logger.WARNING",
        "Logger.ERROR",
        "Logger.VERBOSE",
        "Logger.log",
        "Metric",
        "MetricKind",
        "MetricFamily.COUNTER",
        "MetricFamily.GAUGE",
        "MetricFamily.HISTOGRAM",
        "PreferredMemory.memory_type",
        "ResponseIterator",
        "TRITONSERVER_MEMORY_CPU",
    ),
    "tests/end_to_end/python_models/test_pb_utils.py::test_lines_of_every_level_are_in_the_log": (
        "Logger.log_info",
        "Logger.log_warn",
        "Logger.log_error",
        "Logger.log_verbose",
    ),
}
"""The names of `triton_python_backend_utils` and the members of its classes, by the tests."""
