"""Tests that are coroutines run on an event loop whose clock jumps to the next timer."""

from naiad_testing.loops import JumpingLoop, coroutine_tests

pytest_pyfunc_call = coroutine_tests(JumpingLoop)
