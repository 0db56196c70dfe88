"""Runs in several processes: a run is divided into shards, each in a run directory of its own."""
