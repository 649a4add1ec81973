"""Which extensions of the protocol a server offers, by the names that clients look for."""

from naiad._kernel.plugins import PluginRegistry
from naiad._kernel.services import Services
from naiad.shared_memory import SharedMemoryApi
from naiad.tracing import Tracing

_EXTENSIONS = (
    "classification",
    "sequence",
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


def extensions(plugins: PluginRegistry, services: Services) -> tuple[str, ...]:
    """The extensions: those of plugins only where these are installed."""
    missing: set[str] = set()
    if not any(factory.choice == "sequence_batching" for factory in plugins.schedulers()):
        missing.add("sequence")
    if services.find(SharedMemoryApi) is None:
        missing |= {"system_shared_memory", "cuda_shared_memory"}
    if services.find(Tracing) is None:
        missing.add("trace")
    return tuple(name for name in _EXTENSIONS if name not in missing)
