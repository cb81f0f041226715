"""The one exception the bed raises on purpose."""


class BedError(Exception):
    """Something the bed needs could not be had; the message says what to do about it."""
