"""Rehearsal workers: small programs that read a chat and really compute, as an Inspect provider."""
