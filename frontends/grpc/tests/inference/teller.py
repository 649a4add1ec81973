"""Responses that a stream has ready, decoded for tests."""

from naiad_grpc.messages import message_class


def taken(stream):
    """Everything that is ready, as messages."""
    messages = []
    while (buffers := stream.take()) is not None:
        messages.append(message_class("ModelStreamInferResponse").FromString(b"".join(buffers)))
    return messages


def ready_responses(stream):
    """Everything that is ready, as (id, outputs, final)."""
    return [(each.infer_response.id, len(each.infer_response.outputs), final_of(each)) for each in taken(stream)]


def final_of(message):
    return message.infer_response.parameters["triton_final_response"].bool_param
