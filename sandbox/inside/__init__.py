"""What runs inside a box: standard library only, sent in as text, so any Python image serves.

Read in this order: judge.py (the supervisor: takes orders, answers them), runs.py (one run: its
limits and its end), zygote.py (forks a process per run), runners.py and official.py (how a program
is run in that process), modes.py (what keeps it in, and cleans up after it), processes.py.
Nothing here knows what an input should produce, and nothing here is imported by the host.
"""
