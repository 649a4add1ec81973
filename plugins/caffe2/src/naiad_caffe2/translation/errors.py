"""Errors of a net: raised deep in the translation; the caller adds the model and its file."""


class TranslationError(Exception):
    """A sentence that names the operator and its place in the net."""
