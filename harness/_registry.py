"""Register podium's model providers with Inspect, which imports this module by its entry point."""

from inspect_ai.model import ModelAPI, modelapi


@modelapi(name="recorded")
def recorded() -> type[ModelAPI]:
    """Return the model provider that replays recorded replies (harness/cassette.py)."""
    from podium.harness.cassette import RecordedAPI

    return RecordedAPI


@modelapi(name="fugu")
def fugu() -> type[ModelAPI]:
    """Return the provider of Sakana's Fugu models; it counts tokens of internal models too."""
    from podium.harness.fugu import FuguAPI

    return FuguAPI
