"""Which test holds what of HTTP/2 and gRPC: a row for each duty of a gRPC server, each known attack, option and oracle.

A row names the tests that hold it, by file and function under this folder, or says why there is none. Those under
`transport` and `server`, and test_behaviours.py, run with either transport; the others are about our own.
"""

from collections.abc import Mapping

_ADDRESSES = "transport/test_addresses.py::"
_ANSWERS = "wire/test_answers.py::"
_ATTACKS = "http2/test_attacks.py::"
_BEHAVIOURS = "test_behaviours.py::test_it_behaves_like_every_frontend"
_CALLS = "transport/test_calls.py::"
_CLIENTS = "clients/test_http2_programs.py::"
_COMPRESSION = "wire/test_compression.py::"
_CONNECTIONS = "transport/test_connections.py::"
_ENDINGS = "http2/test_endings.py::"
_FRONTEND = "server/test_frontend.py::"
_HEADS = "wire/test_heads.py::"
_KEEPALIVE = "http2/test_keepalive.py::"
_LIMITS = "transport/test_limits.py::"
_OPTIONS = "connections/test_options.py::"
_READER = "wire/test_message_reader.py::"
_REFUSALS = "connections/test_refusals.py::"
_RFC = "http2/test_violations.py::"
_SLOW = "connections/test_slow_clients.py::"
_TABLES = "http2/test_header_tables.py::"
_TLS = "connections/test_mutual_tls.py::"
_TLS_OF_BOTH = "transport/test_tls.py::"
_WINDOWS = "http2/test_windows.py::"
_FLOOD = _ATTACKS + "test_a_flood_of_frames_ends_the_connection"
_OF_CONNECTION = _RFC + "test_an_error_of_the_connection_ends_it_with_its_code"
_OF_STREAM = _RFC + "test_an_error_of_a_stream_resets_it_and_harms_no_other"
_TO_LIMITS = _OPTIONS + "test_options_come_to_the_limits_of_our_transport"
_TO_GRPCIO = _CONNECTIONS + "test_options_come_to_channel_arguments_of_grpcio"
_PINGED = _CONNECTIONS + "test_a_client_that_is_gone_without_a_word_is_noticed"
_PINGS = _CONNECTIONS + "test_a_client_that_pings_too_often_is_disconnected_unless_any_number_is_allowed"
_FILES = _TLS_OF_BOTH + "test_certificates_that_cannot_work_are_refused_at_start"
_METADATA = _HEADS + "test_binary_metadata_may_be_padded_or_not_and_joined_by_commas"
_UNSUPPORTED = "none: no RPC of this frontend has such metadata to send"

DUTIES: Mapping[str, tuple[str, ...]] = {
    "request: POST": (_HEADS + "test_another_method_than_post_is_405_of_http",),
    "request: path of a method": (_HEADS + "test_an_unknown_method_is_unimplemented",),
    "request: te": (_HEADS + "test_the_field_te_may_be_absent", _OF_STREAM),
    "request: content-type, else 415": (
        _HEADS + "test_other_content_types_are_415_of_http",
        _REFUSALS + "test_another_content_type_is_415",
    ),
    "request: grpc-timeout": (
        _CALLS + "test_a_function_sees_how_much_time_its_caller_gives",
        _HEADS + "test_a_timeout_has_up_to_eight_digits_and_a_unit",
        _HEADS + "test_another_timeout_is_an_internal_error",
    ),
    "request: grpc-encoding": (
        _CONNECTIONS + "test_messages_are_compressed_as_each_side_likes",
        _HEADS + "test_known_encodings_are_taken",
    ),
    "request: grpc-accept-encoding": (
        _HEADS + "test_the_accepted_encodings_are_those_that_both_know_in_the_order_of_the_client",
    ),
    "request: metadata": (
        _BEHAVIOURS,
        _HEADS + "test_metadata_are_the_fields_of_the_caller_in_their_order",
    ),
    "request: user-agent": (_HEADS + "test_metadata_are_the_fields_of_the_caller_in_their_order",),
    "request: metadata that end in -bin": (
        _METADATA,
        _HEADS + "test_what_is_no_base64_has_an_empty_value",
        _HEADS + "test_any_bytes_come_through_base64",
    ),
    "response: head": (
        _ANSWERS + "test_the_head_of_an_answer",
        _ANSWERS + "test_the_head_of_a_compressed_answer_names_its_encoding",
    ),
    "response: initial metadata": (_UNSUPPORTED,),
    "response: messages": (
        _CALLS + "test_a_call_is_answered_with_the_bytes_that_its_function_gave",
        _READER + "test_a_prefix_is_a_flag_and_four_bytes_of_length",
        _READER + "test_any_cut_of_the_data_gives_the_same_messages",
    ),
    "response: trailers": (
        _CALLS + "test_an_error_becomes_its_status_with_its_message",
        _ANSWERS + "test_the_trailers_of_a_status",
        _ANSWERS + "test_a_message_is_escaped_but_for_printable_ascii",
    ),
    "response: trailers only": (_ANSWERS + "test_a_status_before_any_message_is_one_header_block",),
    "response: trailing metadata, grpc-status-details-bin": (_UNSUPPORTED,),
    "error: unknown method": (
        _CALLS + "test_an_rpc_that_there_is_not_is_unimplemented",
        _HEADS + "test_an_unknown_method_is_unimplemented",
    ),
    "error: message above the limit": (
        _READER + "test_a_message_at_the_limit_is_read_and_one_above_is_refused_by_its_prefix",
        _CONNECTIONS + "test_a_message_over_the_limit_is_refused_and_harms_nothing_else",
    ),
    "error: unknown compression": (
        _HEADS + "test_an_unknown_encoding_is_unimplemented_and_the_answer_names_the_known_ones",
        _REFUSALS + "test_content_that_is_not_as_its_encoding_says",
    ),
    "error: broken frame": (
        _READER + "test_a_flag_other_than_0_and_1_is_an_internal_error",
        _REFUSALS + "test_messages_that_break_the_rules_have_their_status",
    ),
    "error: deadline, and the work is cancelled": (
        _REFUSALS + "test_a_deadline_is_kept_by_the_server_and_ends_the_work",
        _CALLS + "test_a_caller_that_leaves_takes_its_call_back",
    ),
    "error: RST_STREAM cancels": (_CALLS + "test_a_caller_that_leaves_takes_its_call_back",),
    "error: RST_STREAM NO_ERROR after an early answer": (
        _REFUSALS + "test_an_answer_before_the_end_of_the_request_resets_it_without_an_error",
    ),
    "compression: gzip and deflate": (
        _COMPRESSION + "test_what_clients_compress_is_read_up_to_the_limit",
        _COMPRESSION + "test_what_we_compress_is_what_clients_read",
        _CONNECTIONS + "test_messages_are_compressed_as_each_side_likes",
    ),
    "streams: both directions interleave": (
        _CALLS + "test_a_stream_carries_messages_both_ways_until_its_client_has_no_more",
        _REFUSALS + "test_a_bidirectional_stream_interleaves",
    ),
    "streams: half-close is not cancel": (
        "transport/test_end.py::test_a_stream_that_still_answers_may_do_so",
        _REFUSALS + "test_a_client_that_closes_its_half_of_the_call_gets_its_answer",
    ),
    "flow control: per stream": (
        _WINDOWS + "test_no_more_is_sent_than_the_window_of_the_stream",
        _RFC + "test_more_data_than_the_window_of_a_stream_resets_it",
    ),
    "flow control: per connection": (
        _WINDOWS + "test_no_more_is_sent_than_the_window_of_the_connection",
        _WINDOWS + "test_more_data_than_the_window_of_the_connection_ends_it",
    ),
    "flow control: a paused model stops the window": (
        _SLOW + "test_a_paused_stream_is_granted_no_window",
        _SLOW + "test_a_function_waits_for_a_client_that_reads_slowly",
        _RFC + "test_a_paused_stream_gets_no_more_window",
    ),
    "flow control: steps of half the window": (_WINDOWS + "test_a_window_is_granted_in_steps_of_half_its_size",),
    "flow control: initial window": (
        _OPTIONS + "test_a_client_may_send_ahead_what_the_option_says",
        _WINDOWS + "test_the_first_frames_announce_the_windows_and_limits",
    ),
    "pings: answered": (_RFC + "test_a_ping_and_settings_are_acknowledged",),
    "pings: --grpc-keepalive-time, -timeout": (
        _KEEPALIVE + "test_a_silent_client_with_a_call_is_pinged_and_dropped_without_an_answer",
    ),
    "pings: --grpc-keepalive-permit-without-calls": (
        _KEEPALIVE + "test_a_connection_without_calls_is_pinged_only_where_that_is_permitted",
    ),
    "pings: --grpc-http2-max-pings-without-data": (
        _KEEPALIVE + "test_pings_without_data_in_between_are_counted",
        _KEEPALIVE + "test_an_answer_lets_pings_start_anew",
    ),
    "pings: --grpc-http2-min-recv-ping-interval-without-data, -max-ping-strikes": (
        _PINGS,
        _ATTACKS + "test_pings_more_often_than_allowed_are_strikes",
        _ATTACKS + "test_pings_between_answers_are_no_strikes",
        _REFUSALS + "test_a_client_that_pings_too_often_is_sent_away",
    ),
    "end: --grpc-max-connection-age, -grace": (
        _ENDINGS + "test_an_old_connection_is_drained",
        _ENDINGS + "test_calls_of_an_old_connection_have_a_grace",
        _CONNECTIONS + "test_calls_of_an_old_connection_end_after_their_grace",
    ),
    "end: graceful stop": (
        _ENDINGS + "test_a_drain_announces_every_stream_first_and_the_real_last_one_after_a_ping",
        _ENDINGS + "test_a_drained_connection_ends_with_its_last_stream",
        "transport/test_end.py::test_what_is_in_flight_is_answered_and_what_is_new_is_refused",
        "transport/test_end.py::test_an_answer_that_takes_long_to_send_arrives_whole",
    ),
    "TLS: ALPN h2": (_TLS + "test_alpn_chooses_http_2",),
    "TLS: mutual": (
        _BEHAVIOURS,
        _TLS + "test_mutual_tls_serves_clients_that_show_a_certificate_alone",
    ),
    "prior knowledge in clear": (
        _CALLS + "test_many_calls_share_a_connection",
        _CLIENTS + "test_curl_gets_the_message_by_prior_knowledge",
    ),
    "unix sockets": (_CONNECTIONS + "test_a_unix_socket_is_made_and_taken_away_again",),
    "services: every RPC, over either transport": (_BEHAVIOURS,),
    "services: health Check and Watch": (
        _FRONTEND + "test_it_says_where_it_listens",
        _FRONTEND + "test_who_watches_the_health_is_reported_the_end",
    ),
    "services: reflection": (_FRONTEND + "test_a_reflection_client_finds_services_and_messages",),
}
"""What a gRPC server owes."""

ATTACKS: Mapping[str, tuple[str, ...]] = {
    "Rapid Reset (CVE-2023-44487)": (_FLOOD, _ATTACKS + "test_an_honest_client_may_cancel_for_hours"),
    "MadeYouReset (CVE-2025-8671)": (_FLOOD,),
    "CONTINUATION flood: size and number": (_ATTACKS + "test_a_flood_of_continuations_ends_the_connection",),
    "CONTINUATION flood: time": (
        _ATTACKS + "test_a_header_block_that_does_not_end_ends_the_connection",
        _SLOW + "test_a_header_block_that_does_not_end_ends_the_connection",
    ),
    "HPACK bomb": (_ATTACKS + "test_a_header_list_that_grows_when_decoded_ends_the_connection_before_it_is_built",),
    "floods of 2019: ping, settings, priority": (_FLOOD,),
    "floods of 2019: empty DATA": (_ATTACKS + "test_a_flood_of_empty_data_ends_the_connection",),
    "many settings in one frame": (_ATTACKS + "test_more_settings_than_a_client_has_in_one_frame_end_the_connection",),
    "many window updates while many streams wait": (
        _ATTACKS + "test_window_updates_that_come_at_once_are_acted_on_at_once",
    ),
    "flood of GOAWAY": (_ATTACKS + "test_a_flood_of_goaway_ends_a_connection_with_calls",),
    "client that does not read": (
        _ATTACKS + "test_frames_for_a_client_that_does_not_read_are_bounded",
        _SLOW + "test_a_client_that_reads_nothing_cannot_have_statuses_pile_up",
        _SLOW + "test_a_client_that_reads_nothing_is_disconnected_when_it_stalls",
    ),
    "zero window": (
        _ATTACKS + "test_an_answer_that_cannot_be_sent_for_too_long_is_reset",
        _SLOW + "test_an_answer_that_the_client_gives_no_window_for_is_reset",
        _SLOW + "test_answers_that_wait_for_a_window_count_as_calls_in_flight_and_to_the_budget",
    ),
    "windows of one byte": (
        _ATTACKS + "test_a_window_of_one_byte_gets_a_byte_and_keeps_no_other_stream_waiting",
        _WINDOWS + "test_a_client_that_takes_a_few_bytes_at_a_time_stalls_its_call",
    ),
    "slow requests": (_SLOW + "test_a_request_that_takes_too_long_is_cancelled",),
    "silent clients": (_LIMITS + "test_a_client_that_keeps_silent_is_disconnected",),
    "gzip bombs": (_COMPRESSION + "test_a_bomb_is_not_inflated_beyond_the_limit",),
    "too many streams": (_ATTACKS + "test_too_many_streams_are_refused_one_by_one",),
    "too many connections": (_LIMITS + "test_connections_over_the_limit_are_closed_at_once",),
    "reuse of stream ids, even ids": (_OF_CONNECTION,),
    "DATA on idle or closed streams": (_OF_CONNECTION, _OF_STREAM),
    "frames above MAX_FRAME_SIZE": (_OF_CONNECTION,),
    "padding longer than the frame": (_OF_CONNECTION,),
    "window overflow": (_OF_CONNECTION, _OF_STREAM),
    "PUSH_PROMISE from a client": (_OF_CONNECTION,),
    "self-dependency": (_OF_STREAM,),
    "uppercase names, late pseudo-headers, headers of connections": (_OF_STREAM,),
    "wrong content-length": (_OF_STREAM, _HEADS + "test_a_content_length_that_is_no_number_is_malformed"),
    "missing preface": (_RFC + "test_a_wrong_preface_is_a_protocol_error",),
    "HTTP/1 on the port": (
        _RFC + "test_http_1_is_answered_in_http_1",
        _REFUSALS + "test_http_1_gets_an_answer_of_http_1_and_nothing_else",
    ),
}
"""Attacks to be proof against."""

OPTIONS: Mapping[str, tuple[str, ...]] = {
    "allow-grpc": (_FRONTEND + "test_it_can_be_switched_off",),
    "grpc-address": (
        _ADDRESSES + "test_a_free_endpoint_is_written_as_grpc_wants_it",
        _CONNECTIONS + "test_a_unix_socket_is_made_and_taken_away_again",
    ),
    "grpc-port": (_ADDRESSES + "test_a_taken_port_is_reported_with_the_option",),
    "grpc-transport": (_FRONTEND + "test_the_transport_is_the_one_that_the_option_names",),
    "reuse-grpc-port": (
        _ADDRESSES + "test_a_port_may_be_shared_when_both_agree",
        _ADDRESSES + "test_of_two_servers_on_one_port_the_second_is_refused_with_the_option",
    ),
    "grpc-max-message-size": (
        _CONNECTIONS + "test_a_message_over_the_limit_is_refused_and_harms_nothing_else",
        _CONNECTIONS + "test_a_message_that_is_over_the_limit_once_it_is_decompressed_is_refused",
        _TO_LIMITS,
        _TO_GRPCIO,
    ),
    "grpc-max-response-size": (
        _CONNECTIONS + "test_an_answer_over_the_limit_is_refused_and_harms_nothing_else",
        _TO_LIMITS,
        _TO_GRPCIO,
    ),
    "grpc-infer-response-compression-level": (
        _CONNECTIONS + "test_messages_are_compressed_as_each_side_likes",
        _TO_LIMITS,
        _TO_GRPCIO,
    ),
    "grpc-header-forward-pattern": (
        "inference/test_unary.py::test_metadata_that_is_forwarded_becomes_parameters",
        _BEHAVIOURS,
    ),
    "grpc-restricted-protocol": (
        "transport/test_restrictions.py::test_a_restricted_call_needs_its_metadata",
        "transport/test_restrictions.py::test_a_restriction_that_is_invalid_is_refused",
    ),
    "grpc-use-ssl": (_TLS_OF_BOTH + "test_clients_that_trust_the_root_are_served_over_tls",),
    "grpc-use-ssl-mutual": (_TLS + "test_mutual_tls_serves_clients_that_show_a_certificate_alone", _FILES),
    "grpc-server-cert": (_TLS_OF_BOTH + "test_a_renewed_certificate_is_used_for_new_connections", _FILES),
    "grpc-server-key": (_TLS_OF_BOTH + "test_a_renewed_certificate_is_used_for_new_connections", _FILES),
    "grpc-root-cert": (
        _TLS + "test_a_root_without_mutual_tls_leaves_it_to_the_client_to_show_a_certificate",
        _TLS + "test_mutual_tls_serves_clients_that_show_a_certificate_alone",
        _FILES,
    ),
    "grpc-max-connections": (_LIMITS + "test_connections_over_the_limit_are_closed_at_once", _TO_LIMITS, _TO_GRPCIO),
    "grpc-max-concurrent-streams": (
        _CONNECTIONS + "test_a_client_learns_how_many_calls_its_connection_may_have",
        _ATTACKS + "test_too_many_streams_are_refused_one_by_one",
        _TO_LIMITS,
        _TO_GRPCIO,
    ),
    "grpc-connection-window": (
        _OPTIONS + "test_a_client_may_send_ahead_what_the_option_says",
        _OPTIONS + "test_a_message_larger_than_the_window_comes_through",
        _TO_LIMITS,
    ),
    "grpc-max-calls": (_LIMITS + "test_calls_over_the_limit_are_refused_at_once_and_health_is_answered",),
    "grpc-handshake-timeout": (
        _LIMITS + "test_a_client_that_keeps_silent_is_disconnected",
        _LIMITS + "test_a_client_that_keeps_silent_in_its_tls_handshake_is_disconnected",
        _TO_LIMITS,
        _TO_GRPCIO,
    ),
    "grpc-max-connection-idle": (_LIMITS + "test_a_client_that_keeps_silent_is_disconnected", _TO_LIMITS, _TO_GRPCIO),
    "grpc-keepalive-time": (_PINGED, _TO_LIMITS, _TO_GRPCIO),
    "grpc-keepalive-timeout": (_PINGED, _TO_LIMITS, _TO_GRPCIO),
    "grpc-keepalive-permit-without-calls": (
        _PINGED,
        _KEEPALIVE + "test_a_connection_without_calls_is_pinged_only_where_that_is_permitted",
        _TO_LIMITS,
        _TO_GRPCIO,
    ),
    "grpc-http2-max-pings-without-data": (
        _PINGED,
        _KEEPALIVE + "test_pings_without_data_in_between_are_counted",
        _TO_LIMITS,
        _TO_GRPCIO,
    ),
    "grpc-http2-min-recv-ping-interval-without-data": (_PINGS, _TO_LIMITS, _TO_GRPCIO),
    "grpc-http2-max-ping-strikes": (_PINGS, _TO_LIMITS, _TO_GRPCIO),
    "grpc-max-connection-age": (_CONNECTIONS + "test_a_connection_of_some_age_is_ended", _TO_LIMITS, _TO_GRPCIO),
    "grpc-max-connection-age-grace": (
        _CONNECTIONS + "test_calls_of_an_old_connection_end_after_their_grace",
        _TO_LIMITS,
        _TO_GRPCIO,
    ),
}
"""The options of the frontend."""

ORACLES: Mapping[str, tuple[str, ...]] = {
    "h2: any legal sequence, any split": (
        "http2/test_oracle.py::test_any_legal_sequence_is_accepted_however_it_is_split",
    ),
    "h2: state machine": ("http2/test_state_machine.py::deliver_to_server",),
    "h2 and hpack: tables": (_TABLES + "test_a_client_may_use_its_table_until_it_knows_that_it_has_none",),
    "random bytes": ("http2/test_random_bytes.py::test_random_frames_end_in_an_answer_or_a_goaway",),
    "grpcio": (_CALLS + "test_a_call_is_answered_with_the_bytes_that_its_function_gave",),
    "tritonclient": (_BEHAVIOURS,),
    "tritonclient aio": ("test_behaviours.py::test_the_client_for_asyncio_gets_the_same",),
    "grpc-js": ("clients/test_grpc_js.py::test_every_kind_of_call_comes_to_its_end",),
    "curl": (_CLIENTS + "test_curl_gets_the_message_by_prior_knowledge",),
    "nghttp": (_CLIENTS + "test_nghttp_gets_the_message",),
    "h2load": (_CLIENTS + "test_h2load_has_every_request_answered",),
    "table of RFC 9113": (_OF_CONNECTION, _OF_STREAM),
    "grpc-go's interop client": ("none: it needs a server of its own protobuf service, grpc.testing",),
}
"""Implementations of others, and chance, as judges."""
