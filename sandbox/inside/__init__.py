"""What runs inside a box: standard library only, sent in as text, so any Python image serves.

Read in this order: judge.py (the supervisor: takes orders, has runs made), zygote.py (forks
a process per run), runners.py (how a program is run in that process), isolation.py (what keeps it
in, and cleans up after it). Nothing here knows what an input should produce, and nothing here is
imported by the host.
"""
