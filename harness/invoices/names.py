"""Which model of an invoice a ledger's call is: ids differ by provider prefix, date and case.

A name is matched by what the user said, else as it was served, else without the provider's prefix,
else without a date at its end. Two dated models of one invoice are never taken for each other.
"""

import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping

DATE = re.compile(r"(-20\d{2}-?[01]\d-?[0-3]\d|-latest|@20\d{6}|:[a-z]+)$")
"""A date at the end of a model's id (`-2024-08-06`, `-20250514`, `@20250514`), `-latest`, or a
variant of OpenRouter's (`:free`)."""


def undated(name: str) -> str:
    """Return a model's name without provider, date and case.

    >>> undated("openai/gpt-4o-2024-08-06"), undated("Gemini 2.5 Flash")
    ('gpt-4o', 'gemini-2.5-flash')
    """
    return DATE.sub("", name.rsplit("/", 1)[-1].lower().replace(" ", "-"))


class Names:
    """The models of one invoice, and the matches that were made."""

    def __init__(self, models: Collection[str], said: Mapping[str, str]) -> None:
        """Index an invoice's models; `said` is what the user says of some."""
        self.models = frozenset(models)
        self.made: dict[str, tuple[str, str]] = {}
        """Ledger's model -> the invoice's, and why."""
        self.unmatched: dict[str, str] = {}
        """Ledger's model -> why it has none."""
        self._said = said
        self._everything = self.models == frozenset([""])
        self._by_undated: dict[str, list[str]] = defaultdict(list)
        for model in sorted(self.models):
            self._by_undated[undated(model)].append(model)
        self._known: dict[tuple[str, str | None], str | None] = {}

    def match(self, model: str, served: str | None) -> str | None:
        """Return the invoice's name of a call's model; None when it has none, or several."""
        asked = (model, served)
        if asked not in self._known:
            self._known[asked] = self._match(model, served)
        return self._known[asked]

    def _match(self, model: str, served: str | None) -> str | None:
        shown = f"{model} (served as {served})" if served and served != model else model
        if self._everything:
            self.made[shown] = ("", "the export does not tell models apart")
            return ""
        for name, why in _candidates(model, served, self._said):
            if name in self.models:
                self.made[shown] = (name, why)
                return name
        close = self._by_undated.get(undated(served or model), [])
        close = close or self._by_undated.get(undated(model), [])
        if len(close) == 1:
            self.made[shown] = (close[0], "same name but for provider, date or case")
            return close[0]
        self.unmatched[shown] = (
            f"the invoice has several of that name ({', '.join(close)}): say which with "
            f"--model {model}=NAME"
            if close
            else "the invoice has no such model"
        )
        return None


def _candidates(
    model: str, served: str | None, said: Mapping[str, str]
) -> Iterator[tuple[str, str]]:
    for name in (model, served):
        if name and name in said:
            yield said[name], "as the user says"
    if served:
        yield served, "as served"
        yield served.rsplit("/", 1)[-1], "as served, without provider"
    rest = model
    yield rest, "same name"
    while "/" in rest:
        rest = rest.partition("/")[2]
        yield rest, "same name without provider"
