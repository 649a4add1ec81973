"""The batch codec of sequences: rows of batches, control tensors, and implicit states."""
