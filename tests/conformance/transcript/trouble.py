"""The exception for invalid transcripts."""


class TranscriptError(Exception):
    """A transcript has a step that cannot be carried out."""
