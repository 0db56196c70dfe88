"""Runs beyond one process: cut into shards, each an ordinary run directory."""
