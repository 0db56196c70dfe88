"""Nothing here is a test or can be imported: test_frameworks.py runs each in its own place."""

collect_ignore_glob = ["*.py"]
