"""
Transcripts: requests to a server, and the responses of a real one.

A transcript is a text file of stories. A story is a title and steps; a step is a request
(`>`) and its response (`<`), after values that differ between runs were replaced by names.
The responses are recorded from a real server, so they are the specification; every other
server must give the same ones. `script.py` describes the format,
`python -m tests.conformance.transcript` records.
"""
