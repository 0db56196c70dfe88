"""`podium report --gate FILE`: its options and its exit code."""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from podium.harness.errors import UserError
from podium.harness.ledger.system_runs import load_runs
from podium.harness.text import say
from podium.reports.audit import audit
from podium.reports.gate import gate_checks, gate_result, read_gate, when_stated
from podium.reports.gate_files import comment, gate_text, junit_xml, refuse_gate_file
from podium.reports.render import write_files
from podium.reports.report import Report


class GateOption:
    """The rules of `--gate`: reads them, finds the report's rows for them, and evaluates them."""

    def __init__(self, args: argparse.Namespace) -> None:
        """Read the file of rules; UserError if the file, or an option that needs it, is invalid."""
        files = {"--junit": args.junit, "--comment": args.comment}
        if not args.gate and (any(files.values()) or args.page or args.inconclusive != "fail"):
            raise UserError("--junit, --comment, --page and --inconclusive go with --gate: add it.")
        self.args, self.gate = args, read_gate(args.gate) if args.gate else None
        self.bound: Any = None
        for option, path in files.items():
            if path:
                refuse_gate_file(path, option)

    def bind(self, report: Report) -> None:
        """Find the report's rows for each rule; UserError for an unknown suite or system."""
        if self.gate:
            earlier = load_runs([self.args.against])[0] if self.args.against else None
            self.bound = gate_checks(self.gate[0], report, earlier), report

    def code(self, dirs: Sequence[Path], beside: Any = None) -> int:
        """Print and write whether the rules are met; return the exit code, 0 without --gate."""
        if not self.gate:
            return 0
        args, (gate, digest), (checks, report) = self.args, self.gate, self.bound
        strict = gate.audit == "strict"
        audits = {path: audit(path, strict=strict, beside=beside) for path in dirs if gate.audit}
        result = gate_result(args.gate.name, when_stated(digest, report), checks, audits)
        say(gate_text(result))
        files = {args.junit: junit_xml(result, args.inconclusive)}
        files |= {args.comment: comment(result, report, args.page)}
        for path in filter(None, files):
            write_files(path.parent, {path.name: files[path]})
        codes = {"holds": 0, "fails": 1, "cannot be shown": 3 if args.inconclusive == "fail" else 0}
        return codes[result.outcome]
