"""
Transcripts: what was said to a server, and what a real one answered.

A transcript is a text file of stories. A story is a title and steps; a step is
what is said (`>`) and what comes back (`<`), word for word, once everything
that differs from run to run has been given a name. The answers are recorded
from a real server, so they are the specification; every other server is
expected to give the same ones. `script.py` describes the form,
`python -m tests.conformance.transcript` records.
"""
