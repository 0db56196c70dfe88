"""A run in which every string that a model, a data set or an error can write attacks a page."""

import random
from pathlib import Path

from podium.harness.records import Question
from podium.harness.system import planned
from podium.harness.workflow import Step, Workflow
from tests.harness.runs import Crew, Exam, sit, steps
from tests.providers.scripted import Heard

PWNED = "document.title='pwned'"
CLASSICS = (
    f"<script>{PWNED}</script>",
    f"</script><script>{PWNED}</script>",
    f'<img src=x onerror="{PWNED}">',
    f"<svg/onload={PWNED}>",
    f'"><iframe srcdoc="<script>parent.{PWNED}</script>">',
    f'\'"--><a href="javascript:{PWNED}">x</a>',
    f"<body onload={PWNED}><details open ontoggle={PWNED}>",
    f"${{{PWNED}}}{{{{7*7}}}}{{% raise %}}",
    "<style>@import 'https://example.org/x.css'</style><base href=https://example.org/>",
    f'<math><mtext><table><mglyph><style><!--</style><img title="--&gt;&lt;img onerror={PWNED}">',
)
ODD = "a\u202eb\u2066c\u2028d\u2029e\x00f\x1b[31mg\ufffeh"
"""Bidi controls, line separators, NUL, a terminal's colours, and no character."""
LINE = random.Random(0).randbytes(5_000_000).hex()
"""Ten million characters without an end of a line; all alike they would be refused as a bomb."""
ALL = " ".join((*CLASSICS, ODD))


class HostileExam(Exam):
    """Questions, ids, targets, subjects and options that attack."""

    def load(self, split: str = "eval") -> list[Question]:
        """Return a question for each classic."""
        return [
            Question(
                id=f"q{at}/{text}",
                text=f"{text} {ODD}",
                kind="integer",
                target=str(at),
                topic=f"{text} {ODD}",
                metadata={"difficulty": text, "note": ALL},
            )
            for at, text in enumerate(CLASSICS)
        ]


def _say(heard: Heard) -> str:
    if heard.messages[-1].text.startswith(CLASSICS[4]):
        raise RuntimeError(ALL)
    return ALL


def _say_at_length(heard: Heard) -> str:
    return LINE if heard.messages[-1].text.startswith(CLASSICS[9]) else _say(heard)


def hostile_run(home: Path) -> Path:
    """Let three systems with names that attack sit it, one with a plan; return the directory."""
    exam, crew = HostileExam(), Crew(sage=_say, clerk=_say)
    sit(home, "single:sage", crew=Crew(sage=_say_at_length), exam=exam)
    sit(home, f"{CLASSICS[2]}&lt;", steps("sage", "clerk"), crew, exam=exam, notes=[ALL])
    planning = planned(
        lambda question, pool: Workflow((Step("clerk", ALL), Step("sage", CLASSICS[0], "all")))
    )
    sit(home, "conductor", planning, crew, exam=exam, deviations=[ALL])
    return home
