"""The kernel's side of sequences: rows of batches, control tensors, and the states that are kept between requests."""
