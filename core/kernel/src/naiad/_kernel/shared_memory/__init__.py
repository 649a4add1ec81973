"""The kinds of memory that clients may share with the server: POSIX segments and CUDA allocations."""
