"""What is wrong with a net: found deep in the translation, told with the model and its file by who called it."""


class TranslationError(Exception):
    """A sentence that names the operator and its place in the net."""
