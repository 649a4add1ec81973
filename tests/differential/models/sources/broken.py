"""Fails when it is loaded."""


class TritonPythonModel:
    def initialize(self, args):
        raise ValueError("broken on purpose")

    def execute(self, requests):
        return []
