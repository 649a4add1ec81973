"""`pb_utils.ModelConfig`: the configuration object that `auto_complete_config` changes."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from naiad_config import DataType

_TENSOR_KEYS = ("name", "data_type", "dims")


class ModelConfig:
    """A configuration as a dict that only grows: to contradict what its author wrote is a ValueError."""

    def __init__(self, model_config: str | Mapping[str, Any]) -> None:
        self._config: dict[str, Any] = json.loads(model_config) if isinstance(model_config, str) else dict(model_config)

    def as_dict(self) -> dict[str, Any]:
        """The configuration as it stands."""
        return self._config

    def set_max_batch_size(self, max_batch_size: int) -> None:
        """Set it. Raises ValueError when the configuration asks for more."""
        written = self._config.get("max_batch_size", 0)
        if written > max_batch_size:
            raise ValueError(
                f"configuration specified max_batch_size {written}, but in auto-complete-config function for model "
                f"'{self._name}' specified max_batch_size {max_batch_size}; lower the former or raise the latter"
            )
        self._config["max_batch_size"] = max_batch_size

    def set_dynamic_batching(self) -> None:
        """Turn dynamic batching on. Raises ValueError when the configuration chose another scheduler."""
        for choice in ("sequence_batching", "ensemble_scheduling"):
            if choice in self._config:
                raise ValueError(
                    f"Configuration specified scheduling_choice as '{choice}', but auto-complete-config function for "
                    f"model '{self._name}' tries to set scheduling_choice as 'dynamic_batching'; drop one of them"
                )
        self._config.setdefault("dynamic_batching", {})

    def add_input(self, properties: Mapping[str, Any]) -> None:
        """Add or complete an input: name, data_type, dims and perhaps optional. Raises ValueError."""
        self._add("input", properties, ("optional",))

    def add_output(self, properties: Mapping[str, Any]) -> None:
        """Add or complete an output: name, data_type and dims. Raises ValueError."""
        self._add("output", properties, ())

    def set_model_transaction_policy(self, properties: Mapping[str, Any]) -> None:
        """Set `decoupled`. Raises ValueError for any other key, and when the configuration says otherwise."""
        if set(properties) - {"decoupled"}:
            raise ValueError(
                f"model transaction property in auto-complete-config function for model '{self._name}' contains "
                f"property other than 'decoupled': {sorted(set(properties) - {'decoupled'})}"
            )
        written = self._config.get("model_transaction_policy")
        decoupled = bool(properties.get("decoupled", False))
        if written is not None and bool(written.get("decoupled", False)) != decoupled:
            raise ValueError(
                f"trying to change decoupled property in auto-complete-config for model '{self._name}', which is "
                f"already set to '{bool(written.get('decoupled', False))}'"
            )
        self._config["model_transaction_policy"] = {"decoupled": decoupled}

    @property
    def _name(self) -> str:
        return str(self._config.get("name", ""))

    def _add(self, kind: str, properties: Mapping[str, Any], more_keys: Sequence[str]) -> None:
        self._check_keys(kind, properties, more_keys)
        tensors: list[dict[str, Any]] = self._config.setdefault(kind, [])
        written = next((each for each in tensors if each["name"] == properties["name"]), None)
        if written is None:
            tensors.append(dict(properties))
            return
        self._check_same(kind, written, properties)
        written.update(properties)

    def _check_keys(self, kind: str, properties: Mapping[str, Any], more_keys: Sequence[str]) -> None:
        named = f"{kind} '{properties['name']}'" if "name" in properties else kind
        where = f"{named} in auto-complete-config function for model '{self._name}'"
        for key in _TENSOR_KEYS:
            if key not in properties:
                raise ValueError(f"{where} is missing '{key}' property.")
        allowed = (*_TENSOR_KEYS, *more_keys)
        unknown = sorted(set(properties) - set(allowed))
        if unknown:
            listed = ", ".join(f"'{key}'" for key in allowed[:-1]) + f" and '{allowed[-1]}'"
            raise ValueError(f"{where} contains property other than {listed}. It has {unknown}")

    def _check_same(self, kind: str, written: Mapping[str, Any], properties: Mapping[str, Any]) -> None:
        name, had, has = written["name"], written.get("data_type", "TYPE_INVALID"), properties["data_type"]
        if had not in ("TYPE_INVALID", has) and DataType.__members__.get(had) != has:
            raise ValueError(
                f"unable to load model '{self._name}', configuration expects datatype {had} for {kind} '{name}', "
                f"model provides {has}"
            )
        dims, expected = list(written.get("dims", ())), list(properties["dims"])
        if dims and dims != expected:
            raise ValueError(
                f"model '{self._name}', tensor '{name}': the model expects dims {expected} but the model configuration "
                f"specifies dims {dims}"
            )
        optional = (written.get("optional"), properties.get("optional"))
        if None not in optional and optional[0] != optional[1]:
            raise ValueError(
                f"model '{self._name}', tensor '{name}': the model expects optional {optional[1]} but the model "
                f"configuration specifies optional {optional[0]}"
            )
