"""Agent frameworks as contestants: the planner, executor and verifier of `baselines/roles.py`.

Same instructions, same cast, same workers; each framework writes the requests in its own way, and
what it adds to them is paid for like everything else. `with_*.py` holds what a user of a framework
would write, and imports it inside its one function; `systems.py` makes the contestants.
"""
