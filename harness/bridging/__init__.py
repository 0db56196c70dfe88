"""Systems that are other people's programs, joined to our pool through Inspect's bridge.

Read in this order: bridge.py (a framework in our process), egress.py (what it may not reach),
inspect_sandbox.py and bridged_script.py (a framework that needs an environment of its own). Not
here: the frameworks (baselines/frameworks/), and the boxes that grade programs (harness/boxes.py).
"""
