"""The setup calls of a library: its model, one instance, and what it declares."""

import ctypes
import json
import os

from naiad.backend import ModelContext, Placement
from naiad.errors import NaiadError
from naiad_config.json import to_json
from naiad_custom.shared_library import abi


class Preparation:
    """A naiad_setup (`struct`), and what the library reported through it: `failure` and its `configuration`.

    Without a placement it is for naiad_complete. Keep it for as long as the library may look at the struct.
    """

    def __init__(self, context: ModelContext, placement: Placement | None = None) -> None:
        self.failure: NaiadError | None = None
        self.configuration = ""
        config = context.config
        self._where = f"instance '{placement.name}' of model '{config.name}'" if placement else f"model '{config.name}'"
        count = len(config.parameters)
        keys = [key.encode() for key in config.parameters]
        values = [value.string_value.encode() for value in config.parameters.values()]
        self.struct = abi.Setup(
            model_name=config.name.encode(),
            version=context.version,
            instance_name=placement.name.encode() if placement else b"",
            kind=placement.kind.encode() if placement else b"CPU",
            device=placement.device if placement else 0,
            configuration=json.dumps(to_json(config)).encode(),
            model_directory=os.fsencode(context.model_directory),
            version_directory=os.fsencode(context.version_directory),
            parameter_count=count,
            parameter_keys=(ctypes.c_char_p * count)(*keys),
            parameter_values=(ctypes.c_char_p * count)(*values),
            fail=abi.SetupFail(self._fail),
            configure=abi.Configure(self._configure),
        )

    def error(self, function: str, code: int) -> NaiadError:
        """What a library that gave back `code` said, or that it said nothing."""
        silent = abi.failure(code, f"{self._where}: {function} gave back {code} and does not say why (naiad_refuse)")
        return self.failure or silent

    def _fail(self, _setup: int, code: int, text: bytes | None) -> int:
        self.failure = abi.failure(code, f"{self._where}: {abi.text_of(text) or 'it does not say why'}")
        return code or abi.INTERNAL

    def _configure(self, _setup: int, text: bytes | None) -> None:
        self.configuration = abi.text_of(text)
