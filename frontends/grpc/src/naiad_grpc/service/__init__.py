"""The RPCs except inference, as functions from message to message; independent of the transport."""
