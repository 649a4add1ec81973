"""Ensembles: their steps submitted to the models, and their place in the life of these models."""
