"""Attacks on the boxes; `python tests/sandbox/attacks/list.py` prints what became of each.

Each module here is also a program: with inside.py before it, it runs in a box, and its standard
input names the attack. An attack says in one sentence what it tries, and returns what it got hold
of, if anything; OSError means that it was refused.
"""
