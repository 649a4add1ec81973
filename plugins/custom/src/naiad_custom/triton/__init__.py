"""What a model.py written for Triton's Python backend needs: the members of `triton_python_backend_utils`."""
