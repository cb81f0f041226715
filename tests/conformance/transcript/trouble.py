"""The exception for transcripts that make no sense."""


class TranscriptError(Exception):
    """A transcript says something that cannot be carried out."""
