"""Collecting metrics: those of models, of the machine, and those that models make for themselves."""
