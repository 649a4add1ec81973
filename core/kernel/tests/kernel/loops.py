"""The loops of these tests: `naiad_testing.loops`."""

from naiad_testing.loops import JumpingLoop, jump, turns, until

__all__ = ["JumpingLoop", "jump", "turns", "until"]
