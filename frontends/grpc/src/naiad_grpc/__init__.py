"""Hook implementations of the gRPC frontend."""
