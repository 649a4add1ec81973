"""Kit for backends: interfaces of models, typed parameters, execution of a batch."""
