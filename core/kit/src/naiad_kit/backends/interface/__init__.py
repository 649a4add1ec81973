"""Model interfaces: the inputs and outputs of a model file, compared with those of its configuration.

For backends whose frameworks know the inputs and outputs of a model.
"""

from naiad_kit.backends.interface.claims import Claim, input_claims
from naiad_kit.backends.interface.comparison import mismatches
from naiad_kit.backends.interface.completion import completed, is_complete
from naiad_kit.backends.interface.narrowing import NarrowInputs
from naiad_kit.backends.interface.shape_tensors import with_shapes_as_rows
from naiad_kit.backends.interface.tensors import Interface, ModelTensor, shape_text
from naiad_kit.backends.interface.written import reserved_inputs, scattered_outputs, wanted_outputs

__all__ = [
    "Claim",
    "Interface",
    "ModelTensor",
    "NarrowInputs",
    "completed",
    "input_claims",
    "is_complete",
    "mismatches",
    "reserved_inputs",
    "scattered_outputs",
    "shape_text",
    "wanted_outputs",
    "with_shapes_as_rows",
]
