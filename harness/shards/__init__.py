"""Runs in several processes: a run is divided into shards, each an ordinary run directory."""
