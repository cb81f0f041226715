"""The exception of the bed."""


class BedError(Exception):
    """Something that the bed needs is missing; the message says what to do."""
