"""Request ids in the messages of errors, the same on every protocol."""

UNKNOWN_MODEL = "Request for unknown model: "
"""How the message begins when the model, or the version, is not there or does not serve."""


def with_request_id(message: str, request_id: str) -> str:
    """The message of an error, after the id of its request where it has one.

    The message about an unknown model stays as it is, as in Triton: no request was made of it, and clients compare the
    beginning.
    """
    if not request_id or message.startswith(UNKNOWN_MODEL):
        return message
    return f"[request id: {request_id}] {message}"
