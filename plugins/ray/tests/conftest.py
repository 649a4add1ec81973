"""Tests that are coroutines run on an event loop whose clock jumps to the next timer."""

from importlib.util import find_spec

from naiad_testing.loops import JumpingLoop, coroutine_tests

collect_ignore = [] if find_spec("ray") else ["on_ray"]  # which imports clients and a store that no other test needs

pytest_pyfunc_call = coroutine_tests(JumpingLoop)
