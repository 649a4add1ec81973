"""Tests that are coroutines run on an event loop of their own, whose clock they can move on."""

from naiad_testing.loops import JumpingLoop, coroutine_tests

pytest_pyfunc_call = coroutine_tests(JumpingLoop)
