"""
The examples of kro, applied by kro's own controller and by ours.

kro ran once, on a real server; what it made is recorded here. The tests apply the
same manifests with our controllers and compare. `python -m tests.conformance.kro record`
records again. The manifests in examples.jsonl are those of kro's Go module, under the
Apache License 2.0, without the descriptions in schemas.

On a real server kro itself runs, too: `test_takeover` has it make objects, stops it, and takes them over.
"""
