"""What authors of backends share: signatures of models, typed parameters, the execution of a batch."""
