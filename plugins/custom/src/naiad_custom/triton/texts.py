"""Text arguments of `pb_utils`: a str, or bytes in UTF-8, as Triton's compiled module takes them."""

from typing import Any


def text_of(subject: str, value: Any) -> str:
    """The value as a str; `subject` is the argument in words.

    Raises TypeError for a value that is no text, UnicodeDecodeError for bytes in another encoding.
    """
    if isinstance(value, str):
        return value
    if isinstance(value, bytes | bytearray):
        return value.decode()
    raise TypeError(f"{subject} must be a str, not {type(value).__name__}")


def a_number(subject: str, value: Any, bits: int, signed: bool = False) -> int:
    """The value as an int, also that of numpy. Raises TypeError for what is no whole number of so many bits."""
    least = -(1 << bits - 1) if signed else 0
    try:
        number = int(value.__index__())
    except AttributeError:
        raise TypeError(f"{subject} must be an int, not {type(value).__name__}") from None
    if not least <= number < least + (1 << bits):
        raise TypeError(f"{subject} must be an int of {bits} bits from {least} on, not {number}")
    return number
