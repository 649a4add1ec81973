"""Raises SystemExit when the server asks whether it is ready, from the second time on."""

from naiad.backend import ModelContext

from naiad_custom import FP32, Array, model


@model(outputs="OUTPUT0")
class Ready:
    def load(self, context: ModelContext) -> None:
        self.armed = context.version_directory / "armed"

    def execute(self, INPUT0: Array[FP32, 1]) -> Array[FP32, 1]:
        return INPUT0 + 1

    def ready(self) -> str:
        if self.armed.exists():
            raise SystemExit
        return ""
