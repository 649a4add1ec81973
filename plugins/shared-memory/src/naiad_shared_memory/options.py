"""Options of shared memory; names and defaults are those that users of Triton know."""

from naiad.options import Option, boolean, positive

MOST_REGIONS = 1024
"""So many regions may be registered at a time unless an option says otherwise."""

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
