"""Runs in several processes: divided into shards, each an ordinary run directory."""
