"""`podium run`, from a request to logs; read run.py first."""


# § What a run will ask and cost, before anything is asked: `podium run --dry-run`.
# §
# § Read `estimate.py` first: it puts together the work that is left (`work.py`), the plans of
# § systems
# § over a pool that only counts (`plans.py`), what past ledgers say (`past.py`) and prices
# § (`cost.py`);
# § `text.py` prints it.
