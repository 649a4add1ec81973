"""The API of Triton's Python backend: the members of `triton_python_backend_utils`."""
