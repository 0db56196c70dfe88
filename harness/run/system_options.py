"""Options of systems, `podium run -S NAME=VALUE`: which apply to whom, and which are refused."""

from collections.abc import Iterator, Mapping, Sequence
from inspect import Parameter, formatannotation
from typing import Any

from pydantic import TypeAdapter, ValidationError
from pydantic.errors import PydanticUserError

from podium.harness.errors import UserError, did_you_mean, reasons_of
from podium.harness.run.catalogue import SET_BY_RUN, Catalogue, split_k
from podium.harness.system import SystemCard

OptionsBySystem = Mapping[str, Mapping[str, Any]]
"""As `RunRequest.system_options` has them: under a system's name, or `""` for all that have it."""


def chosen_options(system: str, asked: OptionsBySystem, catalogue: Catalogue) -> dict[str, Any]:
    """Return the options of a system that a run sets; UserError for a value of the wrong type.

    Options of one system replace those of all, and options of `NAME@K` those of `NAME`.
    """
    has = catalogue.options(system) if asked else {}
    targets = dict.fromkeys(("", *reversed(_names(system))))
    merged = {name: one for target in targets for name, one in asked.get(target, {}).items()}
    return {name: _checked(system, has[name], one) for name, one in merged.items() if name in has}


def _names(system: str) -> tuple[str, str, str]:
    """Return the names by which `-S NAME.option` may mean a system, the most exact one first."""
    return system, split_k(system)[0], system.partition(":")[0]


def _checked(system: str, option: Parameter, value: Any) -> Any:
    """Return a value as an option takes it; UserError if its type is another one."""
    kind = option.annotation
    try:
        adapter = TypeAdapter[Any](Any if isinstance(kind, str) or kind is option.empty else kind)
    except PydanticUserError:  # a type of the system's own, which its solver checks
        return value
    try:  # numbers of a comma list are still text
        return adapter.validate_python(value, strict=not isinstance(value, list))
    except ValidationError:
        said = f"-S {option.name}={value!r} has the wrong type for {system}. Give a value of type"
        raise UserError(f"{said} {formatannotation(kind).replace('typing.', '')}.") from None


def named_arguments(system: str, card: SystemCard) -> Mapping[str, Any]:
    """Return the arguments that a system's name sets: its number, or what a name stands for."""
    k = split_k(system)[1]
    if card.takes_name:
        return card.methods.arguments(k)
    return {card.k: int(k)} if k else {}


def why_options_refused(
    asked: OptionsBySystem, systems: Sequence[str], catalogue: Catalogue
) -> Iterator[str]:
    """Yield what is wrong with the options of a run, by name, type and what else sets them."""
    for target, options in asked.items():
        meant = [one for one in systems if target in ("", *_names(one))]
        for name in options:
            shown = f"-S {target}{'.' if target else ''}{name}"
            if not meant:
                yield (
                    f"{shown}: {target!r} is not in this run. Add --system {target}, or name one "
                    f"of {', '.join(systems)}."
                )
            elif not any(name in catalogue.options(one) for one in meant):
                yield f"{shown}: {_unknown(name, meant, catalogue)}"
    for system in systems:
        yield from reasons_of(_refuse_contradiction, system, asked, catalogue)


def _unknown(name: str, systems: Sequence[str], catalogue: Catalogue) -> str:
    """Return why none of the systems has an option."""
    cards = [catalogue.card(one) for one in systems]
    if name in SET_BY_RUN:
        return f"{SET_BY_RUN[name]} sets it for all systems. Leave it out."
    if own := next((one for one in cards if one.takes_name and name == one.k), None):
        return f"the system's name sets it. Write --system {own.name}@{name.upper()}."
    has = {one: [*catalogue.options(one)] for one in systems}
    listed = "; ".join(f"{one}: {', '.join(names)}" for one, names in has.items() if names)
    near = did_you_mean(name, {option for names in has.values() for option in names})
    return f"{near}There is no option {name!r}. Known options: {listed or 'none'}."


def _refuse_contradiction(system: str, asked: OptionsBySystem, catalogue: Catalogue) -> None:
    """Raise UserError for an option of the wrong type, or that a system's name sets otherwise."""
    for name, value in chosen_options(system, asked, catalogue).items():
        named = named_arguments(system, catalogue.card(system)).get(name, value)
        if named != value:
            raise UserError(
                f"-S {name}={value!r} contradicts the name {system}, which sets {name}={named!r}. "
                "Leave one of them out."
            )
