"""Whose traffic an invoice shows: a run can only be compared where nobody else asked.

A project or key of the run's own is required. It is named, or it is the only one in the export.
"""

from collections.abc import Callable, Collection
from pathlib import Path

from harness.errors import UserError
from harness.invoices.result import Options

Account = tuple[str | None, str | None]
"""Project (or workspace) and key, as a line has them."""


def chosen(
    accounts: Collection[Account], options: Options, path: Path
) -> tuple[Callable[[Account], bool], str]:
    """Return which accounts are the run's, and their name; UserError when that is not clear."""
    projects = sorted({project for project, _ in accounts if project})
    keys = sorted({key for _, key in accounts if key})
    _refuse_absent(options.project, projects, "--project", path)
    _refuse_absent(options.key, keys, "--key", path)
    if options.project or options.key:
        return _named(options), _title(options.project, options.key)
    if options.whole_account:
        return (lambda account: True), "the whole account, said to be this run's alone"
    if not projects and not keys:
        raise UserError(
            f"{path} names no project and no key, so nobody can tell whose calls it bills: export "
            "it grouped by project or key, or say --whole-account if only this run used it."
        )
    if len(set(accounts)) > 1:
        listed = ", ".join([*projects, *keys][:8])
        raise UserError(
            f"{path} has several projects or keys ({listed}): name the run's own with --project "
            "or --key."
        )
    only = next(iter(accounts))
    return (lambda account: account == only), f"{_title(*only)}, the only one in the export"


def _named(options: Options) -> Callable[[Account], bool]:
    def fits(account: Account) -> bool:
        project, key = account
        return options.project in (None, project) and options.key in (None, key)

    return fits


def _title(project: str | None, key: str | None) -> str:
    named = (("project", project), ("key", key))
    return ", ".join(f"{name} {value}" for name, value in named if value)


def _refuse_absent(named: str | None, known: list[str], flag: str, path: Path) -> None:
    if named and named not in known:
        listed = ", ".join(known[:8]) or "none"
        raise UserError(f"{path} has no {flag} {named!r}; it has: {listed}.")
