"""The command `tritonserver`."""
