"""Misbehaves when the server asks whether it is ready, as the file `armed` beside this one says."""

import time

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
            match self.armed.read_text():
                case "exits":
                    raise SystemExit
                case "interrupts":
                    raise KeyboardInterrupt
                case "sleeps":
                    time.sleep(3)
        return ""
