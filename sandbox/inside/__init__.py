"""What runs inside a box: standard library only, sent in as text, so any Python image serves.

judge.py supervises, zygote.py forks a process per run, runners.py runs the program in it, purity.py
says which may take several inputs, and isolation.py keeps it in. Nothing here is imported by the
host, or knows an expected result.
"""
