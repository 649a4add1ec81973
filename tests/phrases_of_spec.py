# ruff: noqa: E501
"""Which test holds which error: the words of Triton that clients and scripts look for, by the tests.

`<...>`, single capitals and `...` stand for values. Not here are the errors of what Naiad does not have (frontends of
other protocols, agents that check repositories, libraries of backends), the help of metrics, and lines of the log.
"""

from collections.abc import Mapping, Sequence

IN_THESE_WORDS: Mapping[str, Sequence[str]] = {
    "core/config/tests/test_detection.py::test_a_pair_of_platform_and_backend_must_fit": (
        "unexpected 'platform' and 'backend' pair, got:<p>, <b>",
    ),
    "core/config/tests/test_detection.py::test_an_unknown_platform_is_refused_with_the_nearest": (
        "unexpected platform type 'caffe2_netdef' for <m>",
        "unexpected platform type '<p>' for <m>",
    ),
    "core/config/tests/test_model_folder.py::test_a_completed_configuration_is_checked_as_a_whole": (
        "must specify 'platform' or 'backend'",
    ),
    "core/config/tests/test_normalisation.py::test_a_gpu_group_without_a_gpu_is_refused_with_what_to_do": (
        "… has kind KIND_GPU but no GPUs are available",
    ),
    "core/config/tests/test_normalisation.py::test_gpus_that_are_not_here_are_all_named": (
        "… specifies invalid or unsupported gpu id 42. GPUs with at least the minimum required CUDA compute compatibility of 6.000000 are: …",
    ),
    "core/config/tests/test_validation.py::test_dynamic_batching_rules": (
        "… must be <= max batch size for <m>",
        "dynamic batching preferred size must be <= max batch size for <m>",
        "dynamic batching preferred size must be positive for <m>",
        "default priority level must be in range [1, N] for <m>",
        "priority queue policy must have priority level in range [1, N] for <m>",
        "Only one priority level is allowed when 'preserve_ordering' is true for <m>",
        "Queue policy can not have DELAY as timeout action when 'preserve_ordering' is true for <m>",
    ),
    "core/config/tests/test_validation.py::test_general_rules": (
        "Response Cache does not currently support model <m> with sequence batching scheduler. Please disable the response cache.",
        "Response Cache does not currently support model <m> with 'decoupled' transaction policy. Please disable the response cache.",
        "'max_batch_size' must be non-negative value for <m>",
        "metric control must specify 'metric_identifier'",
        "metric identifier must specify non-empty 'family'",
        "metric control must specify 'histogram_options'",
        "histogram options must specify non-empty 'buckets'",
        "backend library name '<r>' escapes backend directory",
    ),
    "core/config/tests/test_validation.py::test_instance_rules": (
        "instance group <g> of model <m> has kind KIND_CPU but specifies one or more GPUs",
        'Resource "R" is present as both global and device-specific resource in the model configuration.',
        "… has kind KIND_MODEL but specifies one or more GPUs",
    ),
    "core/config/tests/test_validation.py::test_the_name_must_be_that_of_the_folder": (
        "unexpected directory name '<d>' for model '<n>', directory name must equal model name",
    ),
    "core/config/tests/test_validation_of_ensembles.py::test_ensemble_rules": (
        "must specify 'step' for ensemble '<e>'",
        "ensemble scheduling must be set for ensemble <e> whose platform is ensemble",
        "ensemble scheduling cannot be set for model '<m>' whose platform is not ensemble",
        "Ensemble model '<e>' must have platform type 'ensemble' and empty backend type",
        "must specify 'model_name' in step <i> of ensemble '<e>'",
        "instance group should not be specified for ensemble '<e>'",
        "optimization should not be specified for ensemble '<e>'",
        "model_warmup can not be specified for ensemble '<e>'",
    ),
    "core/config/tests/test_validation_of_ensembles.py::test_steps_must_connect_inputs_and_outputs": (
        "in ensemble '<e>', <step error>",
        "ensemble tensor '<t>' can appear in an output map only once for ensemble '<e>' step <i>",
        "ensemble input '<x>' for ensemble <e>' is not used",
        "ensemble output '<o>' for ensemble <e>' is not used",
        "output '<o>' for ensemble '<e>' is not written",
        ": at least one of its depending tensors, '<t>', is not connected",
        "ensemble tensor '<t>' is unused in ensemble '<e>'",
    ),
    "core/config/tests/test_validation_of_samples_and_files.py::test_files_must_be_there_and_large_enough": (
        "initial_state setting expects N bytes, but the data provided from <f>only has M bytes.",
        "warmup setting expects N bytes, but the data provided from <f>only has M bytes",
    ),
    "core/config/tests/test_validation_of_sequences.py::test_a_state_has_one_initial_state": (
        "initial_state field for state input '<s>' must contain exactly one or zero element. Found '<n>' elements.",
    ),
    "core/config/tests/test_validation_of_sequences.py::test_initial_state_rules": (
        "The data type used for 'initial_state' field of state '<s>' does not match the state data type.",
        "Field 'name' must be set when using initial_state for state input '<s>'.",
        "Number of dimensions in 'initial_state' doesn't match the size of 'state' dimensions for state input '<s>'. N != M",
        "'initial_state' field for state input name '<s>' contains variable dimensions.",
        "'initial_state' dim for input name '<s>' doesn't match 'state' dim description. N != M",
    ),
    "core/config/tests/test_validation_of_sequences.py::test_sequence_rules": (
        "sequence batching control 'C' data-type is 'BYTES', but model '<m>' expects 'UINT64'",
        "State input name '<s>' specified more than once.",
        "sequence batching preferred batch size must be positive for <m>",
        "sequence batching minimum slot utilization must be in range (0.0, 1.0] for <m>",
        "sequence batching specifies multiple CONTROL_SEQUENCE_END tensors for <m>",
        "sequence batching control tensor '<t>' is specified for multiple control kinds for <m>",
        "sequence batching control tensor must have a name for <m>",
        "sequence batching must specify either 'int32_false_true', 'fp32_false_true' or 'bool_false_true' for CONTROL_SEQUENCE_READY for <m>",
        "… must have exactly 2 entries …",
    ),
    "core/config/tests/test_validation_of_tensors.py::test_a_scalar_needs_batching": (
        "… cannot have empty reshape for non-batching model as scalar tensors are not supported for <m>",
    ),
    "core/config/tests/test_validation_of_tensors.py::test_batch_tensor_rules": (
        "batch input kind 'K' expects 1 source input, got N",
        "unknown source input name '<x>'",
        "unknown target output name '<x>'",
        "target output name '<x>' can only be specified once",
        "batch input data type must be TYPE_INT32 or TYPE_FP32",
    ),
    "core/config/tests/test_validation_of_tensors.py::test_tensor_rules": (
        "model input '<x>' must specify 'data_type'",
        "model input must specify 'name'",
        "model input '<x>' must specify 'dims'",
        "model input '<x>' dimension must be integer >= 1, or -1 to indicate a variable-size dimension for <m>",
        "model input '<x>' has different size for dims and reshape for <m>",
        "… has different number of variable-size dimensions for dims and reshape for <m>",
        "… reshape dimensions must be integer >= 1, or -1 …",
        "model input NHWC/NCHW require 3 dims for <m>",
        "shape tensors are only supported for TensorRT platform",
    ),
    "core/kernel/tests/kernel/test_control.py::test_a_load_that_fails_says_why_and_leaves_others_alone": (
        "load failed for model '<m>': version 1 is at UNAVAILABLE state: <reason>;",
        "load failed for model '<m>': <validation text>",
    ),
    "core/kernel/tests/kernel/test_control.py::test_a_model_that_is_not_there_is_not_found": (
        "failed to load '<m>', failed to poll from model repository",
    ),
    "core/kernel/tests/kernel/test_control.py::test_a_new_version_takes_over_from_the_old_one": (
        "... version <v> is not at ready state",
    ),
    "core/kernel/tests/kernel/test_control.py::test_only_explicit_control_loads_and_unloads": (
        "explicit model load / unload is not allowed if polling is enabled",
    ),
    "core/kernel/tests/kernel/test_failing_requests.py::test_a_bad_request_is_refused_before_it_is_queued": (
        "expected number of inputs between R and N but got M inputs for model '<m>'. ...",
    ),
    "core/kernel/tests/kernel/test_load_contents.py::test_files_need_a_configuration": (
        "Load parameter 'config' must be specified for model file override",
    ),
    "core/config/tests/test_overrides.py::test_a_name_that_leaves_the_folder_is_refused_before_anything_is_written": (
        "... must stay within model directory.",
    ),
    "core/kernel/tests/kernel/test_loading.py::test_a_model_in_two_repositories_is_loaded_from_neither": (
        "model appears in two or more repositories",
    ),
    "core/kernel/tests/kernel/test_queue_ends.py::test_a_full_queue_refuses_at_once_and_says_when_to_come_back": (
        "[request id: <id>] Exceeds maximum queue size",
    ),
    "core/kernel/tests/kernel/test_readiness.py::test_a_failing_model_ends_the_start_where_the_option_says_so": (
        "failed to load all models",
    ),
    "core/kernel/tests/kernel/test_refused_requests.py::test_a_batch_size_that_is_too_large_is_refused_with_the_limit": (
        "inference request batch-size must be <= N for '<m>'",
    ),
    "core/kernel/tests/kernel/test_refused_requests.py::test_a_scalar_has_no_batch_dimension": (
        "input '<x>' has no shape but model requires batch dimension for '<m>'",
    ),
    "core/kernel/tests/kernel/test_refused_requests.py::test_inputs_of_unequal_batch_sizes_are_refused": (
        "input '<x>' batch size does not match other inputs for '<m>'",
    ),
    "core/kernel/tests/test_model_context.py::test_a_missing_file_is_reported_with_what_is_there_instead": (
        "unable to find '<path>' for model instance '<i>'",
    ),
    "core/kit/tests/backends/interface/test_completion.py::test_batching_asked_of_a_model_that_cannot_is_refused_with_the_tensor": (
        "autofill failed for model '<m>': model does not support batching while non-zero max_batch_size is specified",
    ),
    "core/kit/tests/backends/interface/test_mismatches.py::test_one_mismatch_is_one_problem": (
        "unable to load model '<m>', configuration expects N inputs, model provides M",
        "configuration expects datatype TYPE_A for output '<o>', model provides TYPE_B",
        'Failed to load model "<i>" configuration expects N inputs, but model expects M inputs.',
        "model '<m>', tensor 'INPUT0': the model expects 2 dimensions (shape [-1,16]) but the model configuration specifies 3 dimensions (an initial batch dimension because max_batch_size > 0 followed by the explicit tensor shape, making complete shape [-1,16,1])",
        "unable to load model '<m>', configuration expects 1 inputs, model provides 2",
        "unexpected inference output 'X', allowed outputs are: …",
        "unable to load model '<m>', configuration expects datatype TYPE_X for input 'i', model provides TYPE_Y",
        "model '<m>', tensor 'T': the model expects dims [4] but the model configuration specifies dims [16]",
    ),
    "core/kit/tests/backends/test_onnx_runtime.py::test_an_error_is_described_by_its_code_and_message": (
        "onnx runtime error <code>: <msg>",
    ),
    "core/kit/tests/frontends/test_classification.py::test_a_huge_output_is_refused": (
        "classification output tensor too large",
    ),
    "core/kit/tests/frontends/test_log_settings.py::test_nothing_changes_when_anything_is_wrong": (
        "invalid argument for log_format, got: <s>",
        "expect string for 'log_format'",
    ),
    "core/kit/tests/frontends/test_log_settings.py::test_the_file_is_the_command_line_s": (
        "log file location can not be updated through network protocol",
    ),
    "core/kit/tests/frontends/test_ports.py::test_one_port_for_two_services_is_refused_with_both_options": (
        "The server cannot listen to <A> requests at port ...",
    ),
    "core/kit/tests/frontends/test_shapes.py::test_what_no_memory_can_hold_is_refused": (
        "byte size overflow for input",
        "causes total element count to exceed maximum size of",
    ),
    "frontends/grpc/tests/codec/test_decoding.py::test_a_version_must_be_a_number_from_1_up": (
        "invalid model version specified '<s>' , version should be an integral value > 0",
    ),
    "frontends/grpc/tests/codec/test_decoding.py::test_inputs_that_are_invalid_are_refused": (
        "unable to find data for input tensor '<x>' for model '<m>' in request.",
        "output '<x>' already exists in request",
        "All input dimensions should be specified for input '<x>' for model '<m>', got [...]",
        "input '<x>' already exists in request",
    ),
    "frontends/grpc/tests/codec/test_parameters.py::test_a_negative_number_is_refused": (
        "invalid value for 'priority', expected value >= 0.",
    ),
    "frontends/grpc/tests/codec/test_parameters.py::test_a_parameter_of_the_wrong_type_is_refused": (
        "invalid value type for 'sequence_id' parameter, expected int64_param or string_param.",
        "... 'sequence_start' parameter, expected bool_param.",
        "... 'priority' parameter, expected int64_param or uint64_param.",
        "... 'timeout' parameter, expected int64_param.",
        "invalid value type for '<k>' parameter, expected int64_param, bool_param, or string_param.",
    ),
    "frontends/grpc/tests/codec/test_parameters.py::test_reserved_names_are_refused": (
        "parameter keys starting with 'triton_' are reserved for Triton usage and should not be specified.",
    ),
    "frontends/grpc/tests/codec/test_shared_memory.py::test_an_output_cannot_be_both_shared_and_classified": (
        "Output can't set both 'shared_memory_region' and 'classification'",
    ),
    "frontends/grpc/tests/codec/test_shared_memory.py::test_contents_beside_a_region_are_refused": (
        "unexpected 'content' provided when using shared memory for input tensor '<x>' for model '<m>'",
    ),
    "frontends/grpc/tests/codec/test_typed_contents.py::test_elements_in_another_field_are_refused": (
        "unexpected explicit tensor data for input tensor '<x>' for model '<m>' of type '<A>', expected datatype '<B>'",
    ),
    "frontends/grpc/tests/codec/test_typed_contents.py::test_typed_contents_beside_raw_ones_are_refused": (
        "contents field must not be specified when using raw_input_contents for '<x>' for model '<m>'",
    ),
    "frontends/grpc/tests/inference/test_unary.py::test_what_the_server_refuses_becomes_a_status": (
        "unexpected inference input 'X', allowed inputs are: INPUT0, INPUT1",
    ),
    "frontends/grpc/tests/service/test_health.py::test_a_model_that_failed_to_load_is_not_ready": (
        "Request for unknown model: '<m>' has no available versions",
        "Request for unknown model : <m>",
    ),
    "frontends/grpc/tests/service/test_repository.py::test_no_repository_can_be_named": (
        "'repository_name' specification is not supported",
    ),
    "frontends/grpc/tests/service/test_repository.py::test_other_parameters_are_refused_before_anything_happens": (
        "unrecognized load parameter '<k>'.",
    ),
    "frontends/grpc/tests/transport/test_end.py::test_what_is_in_flight_is_answered_and_what_is_new_is_refused": (
        "GRPC server is shutting down and has stopped accepting new requests.",
    ),
    "frontends/http/tests/codec/test_decoding.py::test_a_header_length_outside_the_body_is_refused": (
        "inference header size should be in range (0, <len>), got: <n>",
    ),
    "frontends/http/tests/codec/test_decoding.py::test_a_wrong_request_is_refused_with_what_is_wrong": (
        "Input must set only one of the following fields: 'data', 'binary_data_size' in 'parameters', 'shared_memory_region' in 'parameters'.",
    ),
    "frontends/http/tests/codec/test_decoding.py::test_bytes_that_do_not_fit_their_description_are_refused": (
        "unexpected size for input '<x>', expecting <n> additional bytes for model '<m>'",
        "unexpected additional input data for model '<m>'",
    ),
    "frontends/http/tests/codec/test_decoding.py::test_deep_nesting_is_an_error_and_no_crash": (
        "JSON nesting depth exceeds maximum allowed limit (100)",
    ),
    "frontends/http/tests/codec/test_json_tensors.py::test_another_number_of_elements_than_the_shape_says_is_refused": (
        "Unable to parse 'data': Shape does not match true shape of 'data' field",
    ),
    "frontends/http/tests/codec/test_json_tensors.py::test_broken_json_is_a_clean_error": (
        "failed to parse the request JSON buffer: <reason> at <offset>",
    ),
    "frontends/http/tests/codec/test_raw.py::test_a_body_without_a_unique_shape_is_refused": (
        "Raw request must only have 1 input (found N) to be deduced but got M inputs in '<m>' model configuration",
        "The shape of the raw input '<x>' can not be deduced because there are more than one variable-sized dimension",
        "For BYTE datatype raw input '<x>', the model must have input shape [1]",
        "input byte size mismatch for input '<x>' for model '<m>'. Expected N, got M",
    ),
    "frontends/http/tests/codec/test_shared_memory_mistakes.py::test_a_region_must_be_registered": (
        "shared memory region '<n>' already in manager",
    ),
    "frontends/http/tests/codec/test_shared_memory_mistakes.py::test_a_wrong_request_is_refused_with_what_is_wrong": (
        "But no field is set",
    ),
    "frontends/http/tests/generate/test_requests.py::test_elements_that_make_no_shape_are_refused": (
        "The schema can not convert input '<x>' to tensor with proper shape",
    ),
    "frontends/http/tests/server/test_routes.py::test_errors_of_other_paths_and_methods_are_json": (
        "Model name cannot be empty. Please enter a valid name to deploy.",
        "invalid model name '<m>', model name must not contain path traversal characters",
    ),
    "frontends/http/tests/server/test_routes.py::test_settings_of_another_type_are_refused_and_nothing_changes": (
        "expect boolean for 'log_info'",
        "expect int32 for 'log_verbose_level'",
    ),
    "frontends/http/tests/server/test_shared_memory.py::test_a_wrong_registration_is_refused_with_what_is_wrong": (
        "Shared memory register request has no 'key' field",
    ),
    "frontends/http/tests/test_chunks.py::test_a_malformed_body_is_refused": (
        "request JSON size of N bytes exceeds the maximum allowed input size of M bytes. Use --http-max-input-size to increase the limit.",
    ),
    "frontends/http/tests/test_request_heads.py::test_a_header_length_that_is_no_integer_is_refused": (
        "Unable to parse Inference-Header-Content-Length, got: <s>",
    ),
    "frontends/http/tests/test_request_heads.py::test_a_reserved_name_is_not_forwarded": (
        "Header '<h>' is reserved for Triton usage and cannot be forwarded.",
    ),
    "frontends/http/tests/test_request_heads.py::test_a_rule_that_is_invalid_is_refused_at_start": (
        "unknown restricted api '<x>'",
    ),
    "frontends/http/tests/test_request_heads.py::test_a_version_that_cannot_be_is_refused": (
        "failed to get model version from specified version string '<s>' (details: <stol text>), version should be an integral value > 0",
    ),
    "plugins/custom/tests/test_triton_call_errors.py::test_the_error_of_a_call_keeps_its_code_when_it_is_handed_on": (
        "Model <m2> is using the decoupled. The current BLS request call doesn't support models using the decoupled transaction policy. Please use 'decoupled=True' argument…",
    ),
    "plugins/custom/tests/test_triton_call_errors.py::test_the_message_of_an_error_can_be_raised": (
        "Failed for execute the inference request. Model '<m2>' is not ready.",
    ),
    "plugins/custom/tests/test_triton_calls.py::test_calls_are_for_execute": (
        "BLS is only supported during the 'execute' function.",
    ),
    "plugins/custom/tests/test_triton_devices.py::test_a_value_that_says_neither_is_refused": (
        "Incorrect value for FORCE_CPU_ONLY_INPUT_TENSORS: <v>'",
    ),
    "plugins/custom/tests/test_triton_functions.py::test_contradicting_a_configuration_is_refused": (
        "configuration specified max_batch_size 6, but in auto-complete-config function for model '<m>' specified max_batch_size 4",
        "Configuration specified scheduling_choice as 'sequence_batching', but auto-complete-config function for model '<m>' tries to set scheduling_choice as 'dynamic_batching'",
        "input 'I' in auto-complete-config function for model '<m>' is missing 'dims' property.",
        "… contains property other than 'name', 'data_type', 'dims' and 'optional'.",
        "model transaction property in auto-complete-config function for model '<m>' contains property other than 'decoupled'",
        "trying to change decoupled property in auto-complete-config for model '<m>', which is already set to 'False'",
    ),
    "plugins/custom/tests/test_triton_life.py::test_an_auto_complete_config_that_goes_wrong_is_reported": (
        "auto_complete_config function in model '<m>' must return a valid pb.ModelConfig object.",
    ),
    "plugins/custom/tests/test_triton_model.py::test_an_answer_of_the_wrong_form_fails_the_batch": (
        "Expected a list in the execute return, found type '<T>'.",
        "Number of InferenceResponse objects do not match the number of InferenceRequest objects. InferenceRequest(s) size is:N, and InferenceResponse(s) size is:M",
    ),
    "plugins/custom/tests/test_triton_model.py::test_an_item_of_the_wrong_type_fails_its_request_alone": (
        "Expected an 'InferenceResponse' object in the execute function return list, found type '<T>'.",
    ),
    "plugins/custom/tests/test_triton_request.py::test_what_no_model_could_be_asked_is_refused": (
        "Expect parameters keys to have type str, found type <T>",
        "Expect parameters values to have type bool/int/str, found type <T>",
    ),
    "plugins/custom/tests/test_triton_rescheduling.py::test_a_rescheduled_request_has_no_response": (
        "Expected a None object in the execute function return list for reschduled request, found type '<T>'.",
    ),
    "plugins/custom/tests/test_triton_sender.py::test_a_model_that_answers_once_cannot_send_none": (
        "Unable to send response. Non-decoupled model cannot send complete final before sending a response.",
    ),
    "plugins/custom/tests/test_triton_sender.py::test_a_model_that_answers_once_cannot_send_twice": (
        "Unable to send response. Non-decoupled model cannot send more than one response.",
    ),
    "plugins/custom/tests/test_triton_sender.py::test_nothing_is_sent_after_the_final_flag": (
        "Unable to send response. Response sender has been closed.",
    ),
    "plugins/custom/tests/test_triton_sender.py::test_what_cannot_be_sent_is_refused": (
        "Inference Response object must be provided when the response flags is set to zero.",
        "Unable to send response. Unsupported flag provided.",
    ),
    "plugins/rate-limiter/tests/test_limiter.py::test_a_limit_that_is_too_small_is_refused_and_changes_nothing": (
        'Resource count for "R" is limited to X which will prevent scheduling of one or more model instances, the minimum required count is Y',
    ),
    "plugins/scheduler-ensemble/tests/test_check.py::test_circles_are_reported_each_ensemble_in_them": (
        "circular dependency between ensembles: a -> ... -> b -> a",
    ),
    "plugins/scheduler-ensemble/tests/test_life.py::test_a_version_that_is_not_loaded_is_named": (
        "ensemble '<e>' depends on '<m>' whose required version <v> is not loaded",
    ),
    "plugins/scheduler-ensemble/tests/test_life.py::test_an_ensemble_needs_a_version_folder_that_may_be_empty": (
        "at least one version must be available under the version policy of model '<m>'",
    ),
    "plugins/scheduler-ensemble/tests/test_life.py::test_missing_models_are_named_together_with_the_position_of_the_step": (
        "ensemble <e> contains models that are not available or ambiguous: a, b",
    ),
    "plugins/scheduler-ensemble/tests/test_rules.py::test_a_step_may_not_join_two_decoupled_ones": (
        "in ensemble <e>, step of model '<m>' receives inputs originated from different decoupled models",
    ),
    "plugins/scheduler-ensemble/tests/test_rules.py::test_datatypes_must_be_the_same": (
        "in ensemble <e>, ensemble tensor <t>: inconsistent data type: TYPE_A is inferred from model <m1> while TYPE_B is inferred from model <m2>",
        "in ensemble <e>, ensemble tensor <t>: inconsistent shape: [..] is inferred from model <m1> while [..] is inferred from model <m2>",
    ),
    "plugins/scheduler-ensemble/tests/test_rules.py::test_every_input_of_a_model_must_be_mapped_unless_it_is_optional": (
        "in ensemble <e>, input <x> in model <m> is not mapped to any ensemble tensors",
    ),
    "plugins/scheduler-ensemble/tests/test_rules.py::test_mapped_names_must_be_the_models": (
        "in ensemble <e>, ensemble tensor <t> is mapping to non-existing input <x> in model <m>",
        "is mapped from non-existing output <x> in model <m>",
    ),
    "plugins/scheduler-ensemble/tests/test_rules.py::test_no_model_may_take_smaller_batches_than_the_ensemble": (
        "ensemble <e> allows maximum batch size N, but it contains model <m> which only allows maximum batch size to be K",
    ),
    "plugins/scheduler-ensemble/tests/test_run.py::test_an_output_that_was_not_produced_and_cannot_be_missed_fails_the_request": (
        "... at least one output ...",
        "in ensemble '<e>', [request id: …] unexpected deadlock, at least one output is not set while no more ensemble steps can be made",
    ),
    "plugins/scheduler-sequence/tests/codec/test_rescheduling.py::test_a_model_that_is_not_iterative_may_not_ask_for_a_request_once_more": (
        "Request is released with TRITONSERVER_REQUEST_RELEASE_RESCHEDULE, while the model is not configured to handle such a flag.",
    ),
    "plugins/scheduler-sequence/tests/codec/test_rescheduling.py::test_only_states_can_be_left_to_the_next_step": (
        "state '<s>' is not a valid state name",
    ),
    "plugins/scheduler-sequence/tests/test_backlog.py::test_a_sequence_that_gets_no_slot_in_time_is_refused_with_all_its_requests": (
        "timeout of the corresponding sequence has been expired",
    ),
    "plugins/scheduler-sequence/tests/test_flags.py::test_what_no_sequence_can_take_is_refused_on_arrival": (
        "inference request to model '<m>' must specify batch-size 1 due to requirements of sequence batcher",
        "inference request to model '<m>' must specify a non-zero or non-empty correlation ID",
        "inference request for sequence <id> to model '<m>' must specify the START flag on the first request of the sequence",
    ),
    "plugins/shared-memory/tests/test_cuda_regions.py::test_a_gpu_that_is_not_there_is_an_error_that_names_the_region": (
        "failed to register CUDA shared memory region: '<n>', GPUs not supported",
    ),
    "plugins/shared-memory/tests/test_cuda_regions.py::test_both_kinds_share_the_names": (
        "The region named '<n>' is registered as CUDA shared memory, not system shared memory",
    ),
    "plugins/shared-memory/tests/test_hostile_clients.py::test_a_key_does_not_leave_the_folder_of_segments": (
        "cannot register shared memory region '<n>' with key '<key>' as the key contains the reserved prefix 'triton_python_backend_shm_region_'",
        "cannot register shared memory region '<n>' - invalid shm key '<key>'",
    ),
    "plugins/shared-memory/tests/test_hostile_clients.py::test_a_region_ends_within_its_segment": (
        "failed to register shared memory region '<n>': invalid args",
    ),
    "plugins/shared-memory/tests/test_hostile_clients.py::test_a_segment_must_be_there": (
        "Unable to open shared memory region: '<key>'",
    ),
    "plugins/shared-memory/tests/test_hostile_clients.py::test_an_offset_and_a_size_that_overflow_are_reported": (
        "Integer overflow detected: byte_size (N) + offset (M) exceeds maximum value (...) for region '<n>'",
    ),
    "plugins/shared-memory/tests/test_system_regions.py::test_all_regions_are_unregistered_at_once": (
        "Unable to find shared memory region: '<n>'",
    ),
    "plugins/shared-memory/tests/test_system_regions.py::test_clients_may_not_register_unless_the_option_says_so": (
        "Client shared memory is disabled. Start the server with '--allow-client-shm=true' to enable.",
    ),
    "plugins/shared-memory/tests/test_system_regions.py::test_the_status_of_an_unknown_region_is_an_error": (
        "Unable to find system shared memory region: '<n>'",
        "Unable to find cuda shared memory region: '<n>'",
    ),
    "plugins/tensorrt/tests/test_interface.py::test_a_larger_batch_than_the_engine_takes_is_refused": (
        "autofill failed for model '<m>': configuration specified max-batch N but TensorRT engine only supports max-batch K",
    ),
    "plugins/torch/tests/test_compiled.py::test_a_compiled_package_without_its_source_is_served_with_a_configuration": (
        "skipping model configuration auto-complete for '<m>': not supported for pytorch backend",
    ),
    "plugins/torch/tests/test_compiled.py::test_wrong_numbers_of_tensors_are_refused": (
        "The output <o> in the model configuration refers to an output index which doesn't exist. This model has N outputs",
    ),
    "plugins/torch/tests/test_modules.py::test_a_file_without_a_model_is_refused_with_its_line": (
        "Cannot find a subclass of torch.nn.Module",
    ),
    "plugins/torch/tests/test_modules.py::test_a_module_that_chooses_its_device_gets_its_inputs_there": (
        "PyTorch execute failure: <what>",
    ),
    "plugins/torch/tests/test_modules.py::test_weights_that_would_run_code_are_refused": (
        "failed to load model '<m>': <what>",
    ),
    "plugins/torch/tests/test_naming.py::test_what_the_server_adds_must_have_a_number": (
        "input '<x>' does not follow <name>__<index> naming convention.",
        "PyTorch model '<m>' is using sequence batching with state but state '<s>' does not follow the <name>__<index> naming convention. ",
    ),
    "plugins/torch/tests/test_script.py::test_a_configuration_that_does_not_fit_the_model_is_refused": (
        "model configuration must contain at least one input, none were specified.",
    ),
    "plugins/torch/tests/test_script.py::test_arguments_that_cannot_be_fed_are_refused": (
        "Multiple inputs of kind DictType were detected. Only a single input of type Dict(str, Tensor) is supported.",
        "An input of type '<T>' was detected in the model. Only a single input of type Dict(str, Tensor) or input(s) of type Tensor are supported.",
    ),
    "plugins/torch/tests/test_script.py::test_results_are_held_against_the_configuration": (
        "output '<o>' is a scalar which is not supported.",
    ),
    "plugins/tracing/tests/test_selection.py::test_what_is_invalid_is_refused": (
        "Expect only one trace level 'OFF' is specified",
        "Unable to parse 'trace_rate', got: <s>",
        "Unable to parse 'trace_count'. Expecting value >= -1, got:<n>",
    ),
    "plugins/tracing/tests/test_selection.py::test_what_only_the_command_line_sets_is_not_offered": (
        "trace file location can not be updated through network protocol",
    ),
    "plugins/warmup/tests/test_warmup.py::test_a_warmup_that_fails_fails_the_load_and_names_the_sample": (
        "failed to run warmup sample '<s>': <err>; ",
    ),
    "plugins/warmup/tests/test_warmup.py::test_each_run_is_in_the_verbose_log": (
        "model '<m>' instance <instance> is running warmup sample '<s>' for iteration <i>",
    ),
    "tests/end_to_end/test_phrases.py::test_a_request_in_json_that_is_wrong_is_refused_in_these_words": (
        "receiving FP16 data via JSON is not supported. Please use the binary data format for input <x>",
        "unexpected inference output '<x>' for model '<m>'",
    ),
    "tests/end_to_end/test_phrases.py::test_a_request_that_does_not_fit_is_refused_in_these_words": (
        "Request for unknown model: '<m>' is not found",
        "Request for unknown model: '<m>' version <v> is not found",
        "expected N inputs but got M inputs for model '<m>'. Got input(s) ['A'], but missing required input(s) ['B']. Please provide all required input(s).",
        "unexpected inference input '<x>' for model '<m>'",
        "inference input '<x>' data-type is 'A', but model '<m>' expects 'B'",
        "unexpected shape for input '<x>' for model '<m>'. Expected [-1,16], got [1,17]. ",
    ),
    "tests/end_to_end/test_phrases.py::test_a_version_that_is_not_ready_says_so": ("Model version not ready",),
    "tests/end_to_end/test_phrases.py::test_halves_are_not_sent_in_json": (
        "sending FP16 data via JSON is not supported. Please use the binary data format for output <x>",
    ),
    "tests/end_to_end/test_restricted_apis.py::test_the_paths_of_a_group_need_its_header_and_no_other": (
        '{"error":"This API is restricted, expecting header \'<header>\'"}',
    ),
    "tests/end_to_end/test_restricted_apis.py::test_the_rpcs_of_a_group_need_its_metadata_and_no_other": (
        "This protocol is restricted, expecting header 'triton-grpc-protocol-<key>'",
    ),
    "plugins/custom/tests/test_triton_decoupled.py::test_a_decoupled_model_must_return_none": (
        "Python model '<i>' is using the decoupled mode and the execute function must return None.",
    ),
    "core/kit/tests/frontends/test_classification.py::test_a_datatype_without_classes_is_refused": (
        "class result not available for output due to unsupported type '<T>'",
    ),
    "plugins/torch/tests/test_script.py::test_an_input_without_a_datatype_is_refused": (
        "unsupported datatype TYPE_X for input '<x>' for model '<m>'",
    ),
    "plugins/torch/tests/test_script.py::test_strings_of_more_dimensions_are_refused": (
        "Triton only supports 1 dimensional List of String as input for '<x>' for model '<m>'",
    ),
    "plugins/shared-memory/tests/test_hostile_clients.py::test_a_use_lies_within_its_region_even_if_the_segment_is_longer": (
        "Invalid offset for shared memory region: '<n>'",
        "Invalid offset + byte size for shared memory region: '<n>'",
    ),
    "plugins/shared-memory/tests/test_hostile_clients.py::test_an_output_that_does_not_fit_is_not_written_at_all": (
        "shared memory size specified with the request for output '<x>' (N bytes) should be at least M bytes to hold the results",
    ),
    "core/kit/tests/test_buffers.py::test_elements_that_do_not_fill_their_content_are_refused": (
        "incomplete string data for inference input ...",
        "unexpected number of string elements K for inference input '<x>' for model '<m>', expecting N",
        "incomplete string length indicator for inference input '<x>' for model '<m>', expecting 4 bytes but only K bytes available. ...",
        "expected N string elements for inference input '<x>' for model '<m>', got M",
    ),
    "frontends/http/tests/generate/test_responses.py::test_another_number_of_responses_is_the_mistake_of_who_asked_for_one": (
        '{"error":"generate expects model to produce exactly 1 response, use generate stream for model that generates various number of responses"}',
    ),
    "core/kit/tests/frontends/test_restrictions.py::test_a_rule_that_protects_nothing_is_refused": (
        "api '<x>' can not be specified in multiple config groups",
    ),
    "plugins/scheduler-ensemble/tests/test_life.py::test_a_model_that_fails_to_load_fails_its_ensembles_with_its_reason": (
        "ensemble '<e>' depends on '<m>' which has no loaded version. Model '<m>' loading failed with error: …",
    ),
}
"""What Naiad says has these words, perhaps among more."""

IN_OTHER_WORDS: Mapping[str, Sequence[str]] = {
    "frontends/metrics/tests/test_options.py::test_buckets_of_a_metric_that_has_none_to_set_are_reported_with_the_nearest_name": (
        "Metric family '<f>' in 'metric_identifier' is not a customizable metric in Triton core.",
    ),
    "core/cli/tests/test_triton_options.py::test_strict_model_config_is_the_older_name_of_disable_auto_complete_config": (
        "Warning: '--strict-model-config' has been deprecated! Please use '--disable-auto-complete-config' instead.",
    ),
    "core/config/tests/test_detection.py::test_a_model_that_nothing_tells_about_is_refused_with_what_was_looked_for": (
        "Invalid model name: Could not determine backend for model '<m>' with no backend in model configuration. Expected model name of the form 'model.<backend_name>'.",
    ),
    "core/config/tests/test_detection.py::test_an_unknown_backend_is_answered_with_those_installed": (
        "unable to find backend library for backend '<b>', try specifying runtime on the model configuration.",
    ),
    "core/kernel/tests/kernel/test_load_contents.py::test_a_configuration_that_is_invalid_is_refused_and_the_old_one_serves": (
        "Invalid config override: ...",
    ),
    "core/kernel/tests/kernel/test_loading.py::test_a_model_in_two_repositories_is_loaded_from_neither": (
        "failed to poll model '<m>': not unique across all model repositories",
    ),
    "core/kernel/tests/kernel/test_statistics.py::test_statistics_are_reported_for_all_models_one_or_one_version": (
        "requested model '<m>' is not available",
        "requested model version is not available for model '<m>'",
    ),
    "core/kernel/tests/kernel/test_stopping.py::test_a_stopping_server_is_live_and_not_ready_and_takes_no_more_requests": (
        "Server is stopping, scheduler for model has stopped accepting new inference requests",
    ),
    "core/kernel/tests/kernel/test_streams.py::test_a_caller_that_takes_one_response_is_refused_by_a_decoupled_model": (
        "HTTP end point doesn't support models with decoupled transaction policy",
        "ModelInfer RPC doesn't support models with decoupled transaction policy",
    ),
    "core/kernel/tests/test_options.py::test_a_positive_number_starts_at_one": (
        "Error: --http-max-input-size must be greater than 0.",
    ),
    "core/kit/tests/frontends/test_log_settings.py::test_nothing_changes_when_anything_is_wrong": (
        "invalid argument for --log_format, got: <s>",
    ),
    "frontends/http/tests/codec/test_decoding.py::test_a_wrong_request_is_refused_with_what_is_wrong": (
        "attempt to access non-existing object member '<k>'",
        "attempt to access JSON non-string as string",
        "attempt to access non-existing array index '<i>'",
        "Unable to parse '<field>': ",
        "Unable to parse 'shape': attempt to access JSON non-unsigned-integer as unsigned-integer",
        "Unable to parse 'inputs': attempt to access non-existing object member 'inputs'",
        "attempt to access JSON non-boolean as boolean",
    ),
    "frontends/http/tests/codec/test_json_tensors.py::test_another_number_of_elements_than_the_shape_says_is_refused": (
        "Failed to parse 'data' field: shape does not match true shape",
    ),
    "frontends/http/tests/generate/test_requests.py::test_a_document_that_is_invalid_is_refused": (
        "parameter '<k>' has invalid type. It should be either 'int', 'bool', or 'string'.",
    ),
    "frontends/http/tests/server/test_frontend.py::test_health_checks_are_reported_that_the_server_is_about_to_end": (
        '{"error":"Server exiting"}',
    ),
    "frontends/http/tests/server/test_routes.py::test_errors_of_other_paths_and_methods_are_json": (
        '{"error":"Method Not Allowed"}',
        '{"error":"Not Found"}',
    ),
    "frontends/http/tests/server/test_routes.py::test_repository_requests_that_are_invalid_are_refused": (
        "Invalid value for 'ready': expected a boolean",
        "unexpected error on creating Triton parameter",
    ),
    "frontends/http/tests/test_request_heads.py::test_a_header_length_that_is_no_integer_is_refused": (
        "Unable to parse inference header size, got: <s>",
        "Unable to parse inference header size, value is out of range [ ... ]",
    ),
    "plugins/tensorrt/tests/test_engines.py::test_what_tensorrt_says_of_an_engine_that_it_refuses_is_reported_with_a_next_step": (
        "unable to load plan file to auto complete config: <path>",
    ),
    "plugins/torch/tests/test_modules.py::test_nothing_to_serve_is_reported": (
        'PyTorch inductor model file "<path>" is unreachable or inaccessible.',
        "No model found in <dir>/[...]",
    ),
    "plugins/torch/tests/test_unlocked.py::test_tensors_that_are_missing_are_an_error": (
        'Input "<x>" for model instance "<i>" is not found in model input map.',
    ),
    "tests/end_to_end/test_dying_models.py::test_a_worker_that_dies_is_replaced_and_visible_meanwhile": (
        "Stub process '<i>' is not healthy.",
    ),
    "tests/end_to_end/test_raising_models.py::test_a_model_that_raises_fails_its_request_alone": (
        "Failed to process the request(s) for model '<i>', message: <ExceptionType: text>",
    ),
}
"""Naiad refuses the same in words of its own."""
