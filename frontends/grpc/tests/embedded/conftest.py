"""Tests that are coroutines run on an event loop of their own."""

from naiad_testing.loops import coroutine_tests

pytest_pyfunc_call = coroutine_tests()
