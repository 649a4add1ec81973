"""Models as their files describe them, beside what configurations say: what to complete, and what does not fit.

For backends whose frameworks know the inputs and outputs of a model.
"""

from naiad.interface.claims import Claim, input_claims
from naiad.interface.comparison import mismatches
from naiad.interface.completion import completed, is_complete
from naiad.interface.narrowing import NarrowInputs
from naiad.interface.shape_tensors import with_shapes_as_rows
from naiad.interface.tensors import Interface, ModelTensor, shape_text
from naiad.interface.written import reserved_inputs, scattered_outputs, wanted_outputs

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
