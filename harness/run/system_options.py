"""Options of systems (`podium run -S NAME=VALUE`): which systems have an option, and its checks."""

from collections.abc import Iterator, Mapping, Sequence
from inspect import Parameter, formatannotation
from typing import Any

from pydantic import TypeAdapter, ValidationError
from pydantic.errors import PydanticUserError

from podium.harness.errors import UserError, did_you_mean, reasons_of
from podium.harness.run.catalogue import SET_BY_RUN, Catalogue, split_k
from podium.harness.system import SystemCard

OptionsBySystem = Mapping[str, Mapping[str, Any]]
"""System name -> option -> value; the name `""` stands for all systems with the option."""


def chosen_options(system: str, options: OptionsBySystem, catalogue: Catalogue) -> dict[str, Any]:
    """Return the options that a run sets for a system; UserError if a value has a wrong type.

    `-S SYSTEM.OPTION` overrides `-S OPTION`; options of `NAME@K` override those of `NAME`.
    """
    has = catalogue.options(system) if options else {}
    targets = dict.fromkeys(("", *reversed(_names(system))))
    merged = {name: value for target in targets for name, value in options.get(target, {}).items()}
    return {name: _checked(system, has[name], v) for name, v in merged.items() if name in has}


def _names(system: str) -> tuple[str, str, str]:
    """Return the names under which `-S NAME.option` may set a system's option, most exact first."""
    return system, split_k(system)[0], system.partition(":")[0]


def _checked(system: str, option: Parameter, value: Any) -> Any:
    """Return a value converted to the option's type; UserError if it has another type."""
    kind = option.annotation
    try:
        adapter = TypeAdapter[Any](Any if isinstance(kind, str) or kind is option.empty else kind)
    except PydanticUserError:  # a type that pydantic does not know: the solver checks it
        return value
    try:  # the numbers of a list with commas are still text
        return adapter.validate_python(value, strict=not isinstance(value, list))
    except ValidationError:
        text = f"-S {option.name}={value!r} has the wrong type for {system}. Give a value of type"
        raise UserError(f"{text} {formatannotation(kind).replace('typing.', '')}.") from None


def named_arguments(system: str, card: SystemCard) -> Mapping[str, Any]:
    """Return the solver arguments that a system's name sets by its K (a number or name), if any."""
    k = split_k(system)[1]
    if card.takes_name:
        return card.methods.arguments(k)
    return {card.k: int(k)} if k else {}


def why_options_refused(
    requested: OptionsBySystem, systems: Sequence[str], catalogue: Catalogue
) -> Iterator[str]:
    """Yield the errors in a run's `-S` options: unknown names, wrong types, contradictions."""
    for target, options in requested.items():
        affected = [system for system in systems if target in ("", *_names(system))]
        for name in options:
            option = f"-S {target}{'.' if target else ''}{name}"
            if not affected:
                yield (
                    f"{option}: {target!r} is not in this run. Add --system {target}, or name one "
                    f"of {', '.join(systems)}."
                )
            elif not any(name in catalogue.options(system) for system in affected):
                yield f"{option}: {_unknown(name, affected, catalogue)}"
    for system in systems:
        yield from reasons_of(_refuse_contradiction, system, requested, catalogue)


def _unknown(name: str, systems: Sequence[str], catalogue: Catalogue) -> str:
    """Return a sentence on an option that none of a run's systems has, with similar names."""
    cards = [catalogue.card(system) for system in systems]
    if name in SET_BY_RUN:
        return f"{SET_BY_RUN[name]} sets it for all systems. Leave it out."
    if match := next((card for card in cards if card.takes_name and name == card.k), None):
        return f"the system's name sets it. Write --system {match.name}@{name.upper()}."
    has = {system: [*catalogue.options(system)] for system in systems}
    listed = "; ".join(f"{system}: {', '.join(names)}" for system, names in has.items() if names)
    near = did_you_mean(name, {option for names in has.values() for option in names})
    return f"{near}There is no option {name!r}. Known options: {listed or 'none'}."


def _refuse_contradiction(system: str, options: OptionsBySystem, catalogue: Catalogue) -> None:
    """Raise UserError if a system's option has a wrong type, or contradicts the system's name."""
    for name, value in chosen_options(system, options, catalogue).items():
        fixed = named_arguments(system, catalogue.card(system)).get(name, value)
        if fixed != value:
            raise UserError(
                f"-S {name}={value!r} contradicts the name {system}, which sets {name}={fixed!r}. "
                "Leave one of them out."
            )
