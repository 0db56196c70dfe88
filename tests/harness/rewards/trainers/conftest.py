"""Nothing here is a test, or can be imported here: test_trainers.py runs each in its own place."""

collect_ignore_glob = ["*.py"]
