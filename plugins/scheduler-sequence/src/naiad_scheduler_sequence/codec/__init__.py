"""The batch codec of sequences: rows of batches, control tensors, and the states that are kept between requests."""
