"""Text that leaves the process: every protocol writes it as UTF-8."""


def is_text(value: object) -> bool:
    """Whether it is a string that UTF-8 can carry, one without halves of surrogate pairs."""
    if not isinstance(value, str):
        return False
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True
