"""What `pip install podium` adds to Inspect: model providers, found through an entry point."""

from inspect_ai.model import ModelAPI, modelapi


@modelapi(name="podium")
def podium() -> type[ModelAPI]:
    """Return what stands for a system where Inspect names one model (harness/inspect_adapters)."""
    from podium.harness.inspect_adapters import SystemAPI

    return SystemAPI


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
