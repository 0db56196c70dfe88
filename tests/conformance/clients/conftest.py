"""Nothing here is a test or can be imported: conformance.py runs each in its own environment."""

collect_ignore_glob = ["*.py"]
