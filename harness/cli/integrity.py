"""The command that shows whether a run's files are what they were: manifest."""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from harness.errors import UserError

if TYPE_CHECKING:
    from harness.integrity.manifest import Earlier

from harness.escape import say

NAMED = 5
"""Files outside a manifest that are named."""
ABSENT = (
    "whoever ran it should supply MANIFEST.json (a run that was killed has none until it is "
    "resumed); of your own run, `podium manifest write` makes one"
)


def manifest_command(args: argparse.Namespace) -> int:
    """Write, verify or sign what a run's directory held, or make a key to sign with."""
    actions = {"write": _write, "verify": _verify, "sign": _sign, "key": _key}
    return actions[args.action](args)


def _write(args: argparse.Namespace) -> int:
    from harness.experiment import FILE, locked
    from harness.integrity.manifest import FILE as MANIFEST
    from harness.integrity.manifest import write_manifest

    if not any(args.dir.rglob(FILE)) and not any(args.dir.rglob("*.eval")):
        raise UserError(f"{args.dir} holds no run; name the directory that `podium run` wrote.")
    path = args.dir / MANIFEST
    before = path.read_bytes() if path.is_file() else b""
    with locked(args.dir):
        made = write_manifest(args.dir)
    say(f"{path}: {len(made.files)} files")
    if before and path.read_bytes() != before:
        _print_replaced(made.history[-1])
    say(_root(made.root))
    say("Publish it, or sign the manifest: else nothing shows a wholesale rewrite.")
    return 0


def _print_replaced(earlier: "Earlier") -> None:
    """Say which manifest another one replaces, and what has changed since, for good."""
    say(f"It replaces {earlier}")
    for said in earlier.changed:
        say(f"  {said}: `podium manifest verify` and `podium audit` fail on it")
    for what, names in (("added", earlier.added), ("grown", earlier.grown)):
        for name in names:
            say(f"  {name}: {what}")


def _verify(args: argparse.Namespace) -> int:
    from harness.cli.grading import refuse_box
    from harness.integrity.inventory import uncovered
    from harness.integrity.tampering import LIMITS, verify

    refuse_box(args)
    found = verify(args.dir, args.root or "", shared=args.shared)
    if any(one.kind == "absent" for one in found):
        raise UserError(f"There is no manifest in {args.dir}: {ABSENT}.")
    for one in found:
        say(one)
    for earlier in _history(args.dir):
        say(f"It replaces {earlier}")
    say(f"Integrity: {'the files are not those of the manifest' if found else 'holds'}.")
    say(_root_of(args.dir, holds=not found))
    said, vouched = _authenticity(args)
    say(f"Authenticity: {said}.")
    if args.shared:
        say("Of a redacted log only the digests of its originals are checked, not its numbers.")
    grades, same = _grades(args)
    say("\n".join(grades))
    say("Not proved: " + ";\n  ".join(LIMITS) + ".")
    if outside := uncovered(args.dir):
        say(f"  {_named(outside)}.")
    return 0 if vouched and not found and same else 1


def _grades(args: argparse.Namespace) -> tuple[list[str], bool]:
    """Say which verdicts were given anew, and which not and why; return whether all were alike."""
    from harness.cli.grading import regraded

    if not args.regrade:
        return ["Grades: none was given anew (--regrade does, without asking any model)."], True
    logs, said = regraded(args), list[str]()
    for log in logs:
        left = "".join(f"; {count:,} not: {why}" for why, count in sorted(log.left.items()))
        said.append(f"Grades of {log.log.name}: {log.same:,} given anew and the same{left}.")
        said += [f"  {where}: {other}" for where, other in log.others]
    return said, not any(log.others for log in logs)


def _history(folder: Path) -> "tuple[Earlier, ...]":
    from harness.integrity.manifest import FILE, read_manifest

    try:
        return read_manifest(folder / FILE).history
    except UserError:  # which is a finding
        return ()


def _root_of(folder: Path, *, holds: bool) -> str:
    """Return the root that a manifest states; where it cannot be read, why there is none."""
    from harness.integrity.manifest import FILE, read_manifest

    try:
        root = read_manifest(folder / FILE).root
        return _root(root) if holds else f"Root: {root}"
    except UserError as error:
        return f"Root: none ({error})"


def _root(root: str) -> str:
    return f"Root: {root}\n  This is what to publish: compare with --root what was published."


def _named(outside: Sequence[str]) -> str:
    """Say how many files a manifest is not about, with the first names."""
    names = ", ".join(one if one.isprintable() else ascii(one) for one in outside[:NAMED])
    more = f" and {len(outside) - NAMED:,} more" if len(outside) > NAMED else ""
    are = "file here is" if len(outside) == 1 else "files here are"
    return f"{len(outside):,} {are} not covered: {names}{more}"


def _authenticity(args: argparse.Namespace) -> tuple[str, bool]:
    """Return who vouches for the manifest, and whether that is as it was asked."""
    from harness.integrity.signing import check

    signed = check(args.dir, args.public_key)
    asked = args.public_key is not None
    says = {
        "unsigned": "not signed",
        "signed": f"signed by {signed.key}, whom you must know",
        "known": f"signed by the key you named, {signed.key}",
        "invalid": "the signature is not of this manifest, which was changed or extended since",
        "other-key": f"signed by {signed.key}, which is not the key you named",
    }
    bad = signed.verdict in ("invalid", "other-key") or (asked and signed.verdict == "unsigned")
    published = "compared with the published root" if args.root else "no published root was named"
    return f"{says[signed.verdict]}; {published}", not bad


def _sign(args: argparse.Namespace) -> int:
    from harness.integrity.signing import check, sign
    from harness.integrity.tampering import verify

    found = verify(args.dir)
    if found and found[0].kind == "absent":
        raise UserError(f"There is no manifest in {args.dir}; `podium manifest write` makes one.")
    if found:
        raise UserError(f"{found[0]}: what does not hold is not signed; write the manifest first.")
    say(f"{sign(args.dir, args.key)}: signed by {check(args.dir).key}")
    return 0


def _key(args: argparse.Namespace) -> int:
    from harness.integrity.signing import make_key

    say(f"{args.out}: keep it to yourself. {make_key(args.out)}: publish it.")
    return 0
