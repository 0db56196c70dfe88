"""The command that shows whether a run's files are what they were: manifest."""

import argparse


def manifest_command(args: argparse.Namespace) -> int:
    """Write, verify or sign what a run's directory held, or make a key to sign with."""
    actions = {"write": _write, "verify": _verify, "sign": _sign, "key": _key}
    return actions[args.action](args)


def _write(args: argparse.Namespace) -> int:
    from harness.errors import UserError
    from harness.experiment import FILE, locked
    from harness.integrity.manifest import write_manifest

    if not any(args.dir.rglob(FILE)) and not any(args.dir.rglob("*.eval")):
        raise UserError(f"{args.dir} holds no run; name the directory that `podium run` wrote.")
    with locked(args.dir):
        made = write_manifest(args.dir)
    print(f"{args.dir / 'MANIFEST.json'}: {len(made.files)} files, root {made.root}")
    print("Publish the root, or sign the manifest: else it shows no wholesale rewrite.")
    return 0


def _verify(args: argparse.Namespace) -> int:
    from harness.errors import UserError
    from harness.integrity.tampering import LIMITS, verify

    found = verify(args.dir, args.root or "", shared=args.shared)
    if any(one.kind == "absent" for one in found):
        raise UserError(f"There is no manifest in {args.dir}; `podium manifest write` makes one.")
    for one in found:
        print(one)
    print(f"Integrity: {'the files are not those of the manifest' if found else 'holds'}.")
    said, vouched = _authenticity(args)
    print(f"Authenticity: {said}.")
    if args.shared:
        print("Of a redacted log only the digests of its originals are checked, not its numbers.")
    print("Not proved: " + ";\n  ".join(LIMITS) + ".")
    return 0 if vouched and not found else 1


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
    from harness.errors import UserError
    from harness.integrity.signing import check, sign
    from harness.integrity.tampering import verify

    found = verify(args.dir)
    if found and found[0].kind == "absent":
        raise UserError(f"There is no manifest in {args.dir}; `podium manifest write` makes one.")
    if found:
        raise UserError(f"{found[0]}: what does not hold is not signed; write the manifest first.")
    print(f"{sign(args.dir, args.key)}: signed by {check(args.dir).key}")
    return 0


def _key(args: argparse.Namespace) -> int:
    from harness.integrity.signing import make_key

    print(f"{args.out}: keep it to yourself. {make_key(args.out)}: publish it.")
    return 0
