"""Which extensions of the protocol a server offers, by the names that clients look for."""

from naiad._kernel.plugins import PluginRegistry

_ALWAYS = (
    "classification",
    "model_repository",
    "model_repository(unload_dependents)",
    "schedule_policy",
    "model_configuration",
    "system_shared_memory",
    "cuda_shared_memory",
    "binary_tensor_data",
    "parameters",
    "statistics",
    "trace",
    "logging",
)


def extensions(plugins: PluginRegistry) -> tuple[str, ...]:
    """The extensions; sequences are offered where a scheduler for them is installed."""
    if any(factory.choice == "sequence_batching" for factory in plugins.schedulers()):
        return (_ALWAYS[0], "sequence", *_ALWAYS[1:])
    return _ALWAYS
