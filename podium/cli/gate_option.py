"""`podium report --gate FILE`: its options, and what they do to the exit code."""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from podium.cli.arguments import Arguments
from podium.harness.errors import UserError
from podium.harness.text import say


def declare_gate(add: Arguments) -> None:
    """Declare the options of `podium report`."""
    add("--gate FILE", "hold the run to the rules in a file: exit 0 holds, 1 fails, 3 open", Path)
    add("--inconclusive fail|pass", "exit code of --gate if a rule cannot be shown: 3, or 0 (fail)")
    add("--junit FILE", "with --gate: also JUnit XML, a test case for each rule", Path)
    add("--comment FILE", "with --gate: also Markdown for a pull request", Path)
    add("--page URL", "address of the published pages, for --comment to link to")


class GateOption:
    """The gate of a report, if any: read first, bound to the names in the logs, at last judged."""

    def __init__(self, args: argparse.Namespace) -> None:
        """Read the file; UserError for a mistake in it or in the options beside it."""
        from podium.reports.gate import read_gate
        from podium.reports.gate_files import refuse_gate_file

        files = {"--junit": args.junit, "--comment": args.comment}
        if not args.gate and (any(files.values()) or args.page or args.inconclusive != "fail"):
            raise UserError("--junit, --comment, --page and --inconclusive go with --gate: add it.")
        self.args = args
        self.gate, self.digest = read_gate(args.gate) if args.gate else (None, "")
        self.bound: Any = None
        for option, path in files.items():
            if path:
                refuse_gate_file(path, option)

    def bind(self, report: Any) -> None:
        """Find the rows of each rule; UserError for a name that is not there."""
        from podium.harness.ledger.system_runs import load_runs
        from podium.reports.gate import gate_checks

        if self.gate:
            runs = load_runs([self.args.against])[0] if self.args.against else None
            self.bound = gate_checks(self.gate, report, runs), report

    def code(self, dirs: Sequence[Path], beside: Any = None) -> int:
        """Print and write the result; return the exit code, 0 without a gate."""
        from podium.reports.audit import audit
        from podium.reports.gate import gate_result, when_stated
        from podium.reports.gate_files import comment, gate_text, junit_xml
        from podium.reports.render import write_files

        if not self.gate:
            return 0
        args, kind, (checks, report) = self.args, self.gate.audit, self.bound
        audits = [
            (f"audit of {one.name} is {kind}", audit(one, strict=kind == "strict", beside=beside))
            for one in (dirs if kind else ())
        ]
        found = gate_result(args.gate.name, when_stated(self.digest, report), checks, audits)
        say(gate_text(found))
        if args.junit:
            write_files(args.junit.parent, {args.junit.name: junit_xml(found, args.inconclusive)})
        if args.comment:
            text = comment(found, report, args.page)
            write_files(args.comment.parent, {args.comment.name: text})
        codes = {"holds": 0, "fails": 1, "cannot be shown": 3 if args.inconclusive == "fail" else 0}
        return codes[found.outcome]
