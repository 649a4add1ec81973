"""Options of shared memory; names and defaults are those that users of Triton know."""

from naiad.options import Option, boolean, positive

MOST_REGIONS = 1024
"""The default of the most regions that are registered at a time."""

OPTIONS = (
    Option(
        "allow-client-shm", False, "let clients register shared memory, which they may then name in requests", boolean
    ),
    Option(
        "shared-memory-lending",
        False,
        "let models read large inputs where clients have them, who may change them meanwhile, in place of copies",
        boolean,
    ),
    Option(
        "max-shared-memory-regions", MOST_REGIONS, "the most regions that may be registered at a time", positive, "N"
    ),
)
