"""Additions of `pip install podium` to Inspect: model providers, found through an entry point."""

from inspect_ai.model import ModelAPI, modelapi


@modelapi(name="recorded")
def recorded() -> type[ModelAPI]:
    """Return the provider of recorded workers (harness/cassette.py)."""
    from podium.harness.cassette import RecordedAPI

    return RecordedAPI


@modelapi(name="fugu")
def fugu() -> type[ModelAPI]:
    """Return the provider of Sakana's Fugu, orchestration tokens included (harness/fugu.py)."""
    from podium.harness.fugu import FuguAPI

    return FuguAPI
