"""Telling in one sentence what somebody else's code raised."""


def told(error: BaseException) -> str:
    """`ValueError: its text`; the type alone where there is no text, or where asking for it raises too."""
    try:
        text = str(error)
    except BaseException:  # noqa: BLE001 - the error's own code, which must not hide the error
        text = ""
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
