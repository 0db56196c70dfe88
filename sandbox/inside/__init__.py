"""Code that runs inside a box: standard library only, sent as text, so any Python image works.

judge.py supervises, zygote.py forks a process per run, runners.py runs the program in that process,
purity.py decides which programs may take several inputs in one process, and isolation.py confines
programs. The host never imports this code, and no expected output enters the box.
"""
