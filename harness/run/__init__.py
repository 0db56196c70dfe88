"""The code of `podium run`, from a request to logs; read run.py first."""
