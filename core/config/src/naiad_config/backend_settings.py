"""Settings of backends, as the option `--backend-config` has them: for one backend or, without its name, for all."""

from collections.abc import Mapping, Sequence

from naiad_config.errors import UsageError


def backend_settings(texts: Sequence[str]) -> Mapping[str, Mapping[str, str]]:
    """The settings by backend from `[BACKEND,]KEY=VALUE`; those for all backends are under "".

    Raises UsageError for another text.
    """
    settings: dict[str, dict[str, str]] = {}
    for text in texts:
        backend, comma, setting = text.partition(",")
        if not comma or "=" in backend:
            backend, setting = "", text
        key, equals, value = setting.partition("=")
        if not equals or not key:
            raise UsageError(f"--backend-config '{text}' must be [BACKEND,]KEY=VALUE")
        settings.setdefault(backend, {})[key] = value
    return settings
