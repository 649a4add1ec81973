"""Tracing: which requests are traced, what is told of them, and where it goes."""
