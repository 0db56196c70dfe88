"""Register podium's model providers; Inspect imports this module through an entry point."""

from inspect_ai.model import ModelAPI, modelapi


@modelapi(name="recorded")
def recorded() -> type[ModelAPI]:
    """Return the model provider that replays recorded replies (harness/cassette.py)."""
    from podium.harness.cassette import RecordedAPI

    return RecordedAPI


@modelapi(name="fugu")
def fugu() -> type[ModelAPI]:
    """Return the model provider of Sakana's Fugu, which counts tokens of its internal models."""
    from podium.harness.fugu import FuguAPI

    return FuguAPI
