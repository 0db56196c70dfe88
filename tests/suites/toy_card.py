"""The card of every toy exam."""

from podium.harness.suite import NONE_PUBLISHED, Card

CARD = Card(
    title="A toy",
    paper="none: made for a test",
    sizes={},
    licence="Apache-2.0 (this repository)",
    human=NONE_PUBLISHED,
    about="A toy.",
    changes=("1-A (2026-11-21): first version",),
)
