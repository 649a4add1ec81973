"""Hook implementations of the metrics frontend."""
