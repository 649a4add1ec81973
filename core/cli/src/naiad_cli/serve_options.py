"""The options of `naiad serve`: its own, those of the kernel and of plugins, and those of Triton without effect."""

from naiad import PluginRegistry
from naiad.options import Option, boolean
from naiad_cli.model_files import MODEL_NAME
from naiad_cli.option_sources import OPTIONS_FILE
from naiad_cli.triton_options import triton_options

OWN_OPTIONS = (
    Option(
        "reload",
        False,
        "load models anew when their files change",
        boolean,
    ),
    Option("access-log", "off", "log a line for each request", choices=("off", "text", "json")),
    MODEL_NAME,
    OPTIONS_FILE,
    Option("api-keys", "", "the keys that authorize callers, hashed, in TOML", metavar="FILE"),
)
"""Options of this command that are not the server's."""


def every_option(registry: PluginRegistry) -> tuple[Option, ...]:
    """All options that the command takes, and that an options file may have."""
    options = registry.options()
    return (*OWN_OPTIONS, *options, *triton_options({option.name for option in options}))
