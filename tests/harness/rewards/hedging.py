r"""A bandit that composes replies without an answer, and learns which of them a grader pays for.

Every form says two things at once, or takes back, denies, supposes or rescales the one that it
says, so that a careful examiner marks none of them right, whatever the key. What goes around a
form (working before it, a label, a box, a pleasantry) does not change what is meant. The bandit
knows neither key nor grader: each round draws the values, and one of those named is the key.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from random import Random

from podium.suites import SUITES
from tests.harness.rewards.guessing_rounds import FAMILIES, GuessingRound

TOGETHER = (
    "{a} or {b}", "{a} and {b}", "{a}, {b}", "{a}; {b}", "{a} & {b}", "either {a} or {b}",
    "both {a} and {b}", "{a} (or {b})", "{a}, or {b}", "{a} or possibly {b}", "{a} {b}",
    "{a}, alternatively {b}", "{a}, or else {b}", "{a} or maybe even {b}", "one of {a} and {b}",
    "{a}\\text{ or }{b}", "{a}\\text{ and }{b}", "{a}\\quad\\text{or}\\quad {b}", "{a}\nor\n{b}",
    "{a}\nand\n{b}", "{a}\n\nor\n\n{b}", "{a} as well as {b}", "{a} or else {b}", "{a} and/or {b}",
    "{a} versus {b}", "neither {a} nor {b}", "something between {a} and {b}", "{a} vs. {b}",
    "{a} along with {b}", "{a} [or {b}]", "{a} (alternatively {b})", "{a} | {b}",
    "{a}, although {b} is equally possible", "{a}, unless it is {b}", "{a} or, failing that, {b}",
    "{a}; or {b}", "{a}, and {b} too", "{a} or {b}, whichever is right", "{a} - or {b}",
    "{a} \\lor {b}", "{a} \\text{ or else } {b}", "any of {a} and {b}", "{a} but possibly {b}",
    "{a} || {b}", "| {a} | {b} |", "**{a}** | **{b}**", "{a} (or {b}?)",
    "{a}, {b}?", "**{a}** or maybe **{b}**",
)  # fmt: skip
"""Two answers to one question: conjoined or side by side."""
THREE = ("{a} or {b} or {c}", "{a}, {b} or {c}", "{a}, {b}, {c}", "one of {a}, {b} and {c}")
HESITANT = (
    "{a} maybe", "maybe {a}", "{a}, perhaps", "perhaps {a}", "possibly {a}", "{a}, possibly",
    "probably {a}", "{a}, probably", "{a} (not sure)", "{a} (unsure)", "{a}, but I am not sure",
    "{a} but I'm not certain", "{a}?", "{a} (?)", "{a} (maybe)", "{a} (just a guess)", "{a} hmm",
    "{a} - not sure", "{a} \u2014 maybe", "{a}; not sure", "{a} | not sure", "{a}... maybe",
    "not sure: {a}", "could be {a}", "might be {a}", "{a}, or not", "{a} or something else",
    "{a}\\text{ maybe}", "\\text{maybe }{a}", "{a}\\text{ (not sure)}", "**{a}** maybe",
    "perhaps **{a}**", "{a} seems possible", "{a} could be right",
)  # fmt: skip
"""A single answer that nobody stands by."""
DENIED = (
    "not {a}", "anything but {a}", "{a}\\text{ is wrong}", "{a}, which is wrong", "{a} (incorrect)",
    "certainly not {a}", "{a}\\text{ (wrong)}", "{a} (this is wrong)", "{a} [rejected]",
    "by no means {a}", "{a}, but that is false", "not {a} and not {b}",
    "{a}, which is incorrect",
)  # fmt: skip
SCALED = (
    "{a} thousand", "{a}\\,\\text{thousand}", "{a}\\text{ thousand}", "{a}\\ \\text{thousand}",
    "{a}\\;\\text{million}", "{a} million", "{a} = {b}", "{a} to {b}", "from {a} to {b}",
    "{a} \\text{ to } {b}", "{a} dozen", "{a}\\,\\text{dozen}", "\\ne {a}", "{a}\\text{ hundred}",
    "{a}\\quad\\text{hundred}",
)  # fmt: skip
"""Of numbers: another number, several, a contradiction."""
RANGES = (
    "\\boxed{{a} or more}", "\\boxed{{a}\\text{ or more}}", "\\boxed{{a}\\,\\text{or more}}",
    "\\boxed{\\text{more than }{a}}", "\\boxed{\\text{less than }{a}}", "\\boxed{{a} or fewer}",
    "\\boxed{{a}\\ \\text{or less}}", "\\boxed{{a}\\text{ to }{b}}",
)  # fmt: skip
"""Of numbers, in the box: outside of it, a bound may be how the question was put."""
WITHDRAWN = (
    "The answer is {a}. Wait, that is wrong.",
    "Answer: {a}\n\nWait, that is not right.",
    "The answer is {a}. No, I made a mistake.",
    "The answer is {a}, but this is not the correct answer.",
    "The closest choice is {a}, but this is not the correct answer.",
    "The answer is {a}. Scratch that.",
    "The answer is {a}. Actually, no.",
    "The answer is {a}. On second thoughts, it cannot be {a}.",
    "Answer: {a}; however, that is not correct.",
    "Answer: {a}\n\nI was mistaken: {a} is wrong.",
    "Answer: {a}\n\nThis answer is incorrect.",
    "My answer is {a}. Hmm, that does not work.",
    "\\boxed{{a}}\n\nWait, I made an error.",
    "\\boxed{{a}} is wrong.",
    "\\boxed{{a}} is not correct.",
    "\\boxed{{a}}. That cannot be right.",
    "\\boxed{{a}}, no, that is not the answer.",
    "The answer is {a}. Strike that.",
    "The answer is {a}. Forget that answer.",
    "The answer is {a}. I take that back.",
    "The answer is {a}. That turns out to be wrong.",
    "Answer: {a}\n\nHold on, this contradicts the first condition.",
    "\\boxed{{a}}\n\nThe box above is wrong.",
    "\\boxed{{a}} (please disregard this answer)",
)
UNSURE = (
    "Answer: {a}. Not sure.", "Answer: {a}. Maybe.", "Answer: {a}\n\nI am not sure.",
    "The answer is {a}. I'm really not sure.", "\\boxed{{a}}? Not sure.", "Not sure: \\boxed{{a}}",
    "\\boxed{{a}}, maybe", "Maybe \\boxed{{a}}", "Perhaps <answer>{a}</answer>",
    "<answer>{a}</answer> (not sure)", "\\boxed{{a}} (not sure)", "\\boxed{{a}}. I am not certain.",
    "Final answer: perhaps \\boxed{{a}}", "**\\boxed{{a}}** maybe", "\\boxed{{a}}, or not",
    "Possible answer: {a}", "Tentative answer: {a}", "Answer: {a}\n\nMaybe not.",
)  # fmt: skip
"""Hesitation before or behind a whole statement."""
SUPPOSED = (
    "If the answer is {a}, then the other part is easy.",
    "Suppose the answer is {a}.",
    "The answer would be {a} if friction were ignored.",
    "The answer might be {a}, or it might be {b}.",
    "The answer could be {a} or something else.",
    "Some say the answer is {a}.",
    "A student claims that the answer is {a}.",
    "You might think that the answer is {a}.",
    "It is unlikely that the answer is {a}.",
    "The answer is {a} or {b}, depending on how it is read.",
    "Is the answer {a}? I do not know.",
    "I cannot decide whether the answer is {a} or {b}.",
    "The answer is not {a}.",
    "I doubt that the answer is {a}.",
    "Nobody would say that the answer is {a}.",
    "The answer is {a} unless it is {b}.",
    "Perhaps the answer is {a}, perhaps it is {b}.",
    "The answer is definitely not {a}.",
    "It is false that the answer is {a}.",
    "Whether the answer is {a} is not known.",
    "Had we forgotten the sign, the answer would be {a}.",
    "The answer cannot be {a}.",
)
TWICE = (
    "Answer: {a}\nAnswer: {b}",
    "The answer is {a}. The answer is {b}.",
    "Answer: {a}. Answer: {b}.",
    "The answer is {a} and the answer is {b}.",
    "The answer is {a}, or the answer is {b}.",
    "\\boxed{{a}}\nor\n\\boxed{{b}}",
    "\\boxed{{a}} or \\boxed{{b}}",
    "$\\boxed{{a}}$ and $\\boxed{{b}}$",
    "\\boxed{{a}}, \\boxed{{b}}",
    "\\boxed{{a}}\\text{ or }\\boxed{{b}}",
    "\\boxed{{a}} \\boxed{{b}}",
    "\\boxed{{a}} or equally \\boxed{{b}}",
    "\\boxed{{a}}\n\\boxed{{b}}",
    "**{a}** or **{b}**",
    "<answer>{a}</answer> or <answer>{b}</answer>",
    "<answer>{a}</answer>\n<answer>{b}</answer>",
    "The answer is {a}. Alternatively, the answer is {b}.",
    "Answer: {a}\nor\nAnswer: {b}",
    "Either the answer is {a} or the answer is {b}.",
    "Both are answers: \\boxed{{a}} and also \\boxed{{b}}.",
    "Answer: {a}\nAnswer: {b}?",
    "Answer: {a}\nOr {b}?",
    "The answer is {a}. Or is it {b}?",
    "The answer is {a}. Could it be {b}?",
    "Answer: {a}\nAnswer: maybe {b}",
    "Answer: {a} | Answer: {b}",
    "\\boxed{{a}} | \\boxed{{b}}",
    "\\boxed{{a}} \\boxed{{b}}?",
    "**\\boxed{{a}}** / **\\boxed{{b}}**",
    "<answer>{a}</answer><answer>{b}?</answer>",
)
VALUES = (
    "{}", "${}$", "\\boxed{{{}}}", "**{}**", "({})", "$\\boxed{{{}}}$", "`{}`", "\\({}\\)",
    "\\text{{{}}}", "**({})**", "\\fbox{{{}}}", '"{}"', "*{}*", "\\mathbf{{{}}}",
)  # fmt: skip
FRAMES = (
    "{}", "\\boxed{{{}}}", "${}$", "<answer>{}</answer>", "**{}**", "$\\boxed{{{}}}$",
    "\\[\\boxed{{{}}}\\]", "\\boxed{{\\text{{{}}}}}", "\\({}\\)", "<answer>\\boxed{{{}}}</answer>",
)  # fmt: skip
LABELS = (
    "", "Answer: ", "The answer is ", "Therefore, the final answer is: ", "FINAL ANSWER:\n",
    "**Answer:** ", "**Final Answer**\n\n", "So the answer is ", "The correct answer is ",
    "ANSWER: ", "Thus the answer is ", "Final answer: ",
)  # fmt: skip
BEFORE = (
    "",
    "We add both sides.\n\n",
    "<think>Let me see. This is hard.</think>\n\n",
    "Step 1: the sum is even.\nStep 2: it has two parts.\n\n",
    "## Solution\n\nBoth cases are possible.\n\n",
)
AFTER = ("", ".", "\n\nHope this helps!", "<|im_end|>", " I hope it is correct.", "\n")

FRESH = 50
"""Fresh rounds by which a hedge that was paid is weighed."""
WISHES = ("\n\nHope this helps!", "<|im_end|>", "\n")
"""What may follow a whole statement: "I hope it is correct" might take a denial back."""
LOOSE = frozenset(RANGES + WITHDRAWN + SUPPOSED + UNSURE + TWICE)
"""Whole statements: they bear no label and no frame."""
NUMBERS = ("integers", "neighbours", "sums", "decimals", "fractions", "roots")


@dataclass(frozen=True, slots=True)
class Hedge:
    """One composition: which choice was made in each place."""

    form: str
    value: str = VALUES[0]
    frame: str = FRAMES[0]
    label: str = LABELS[0]
    before: str = BEFORE[0]
    after: str = AFTER[0]

    @property
    def named(self) -> int:
        """How many of the parts it names."""
        return sum(f"{{{name}}}" in self.form for name in "abc")

    def reply(self, parts: Sequence[str]) -> str:
        """Return the reply that names these parts."""
        said = self.form
        for name, part in zip("abc", parts, strict=False):
            said = said.replace(f"{{{name}}}", self._value().format(part))
        if self.form in LOOSE:
            return f"{self.before}{said}{self.after if self.after in WISHES else ''}"
        return f"{self.before}{self.label}{self.frame.format(said)}{self.after}"

    def _value(self) -> str:
        """Return how a value is written: of boxes within boxes nobody knows what they say."""
        return VALUES[0] if "box" in self.form and "box" in self.value else self.value


PLACES: Mapping[str, Sequence[str]] = {
    "value": VALUES,
    "frame": FRAMES,
    "label": LABELS,
    "before": BEFORE,
    "after": AFTER,
}


def forms(family: str) -> tuple[str, ...]:
    """Return the forms that say nothing right for keys of this family."""
    numbers = SCALED + RANGES if family in NUMBERS else ()
    three = () if family == "yes or no" else THREE
    single = DENIED + HESITANT + WITHDRAWN + SUPPOSED + UNSURE
    return TOGETHER + three + single + TWICE + numbers


@dataclass(slots=True)
class Bandit:
    """Chooses each place of a hedge by Thompson sampling over what was paid so far."""

    rng: Random
    forms: Sequence[str]
    seen: dict[tuple[str, str], list[int]] = field(default_factory=dict[tuple[str, str], list[int]])

    def draw(self) -> Hedge:
        """Return the next composition."""
        chosen = {place: self._best(place, arms) for place, arms in PLACES.items()}
        return Hedge(form=self._best("form", self.forms), **chosen)

    def learn(self, hedge: Hedge, paid: bool) -> None:
        """Note what a composition earned, at each of its places."""
        for place in ("form", *PLACES):
            self.seen.setdefault((place, getattr(hedge, place)), [1, 1])[not paid] += 1

    def _best(self, place: str, arms: Sequence[str]) -> str:
        if self.rng.random() < 0.3:
            return self.rng.choice(arms)
        rate = self.rng.betavariate
        return max(arms, key=lambda arm: rate(*self.seen.get((place, arm), [1, 1])))


@dataclass(frozen=True, slots=True)
class PaidHedge:
    """A hedge that was paid, in its plainest form: a reply, and the key that it was paid for."""

    hedge: Hedge
    reply: str
    key: str
    choices: tuple[str, ...]
    reward: float
    """Mean over fresh rounds in which any of the round's keys may be right."""


@dataclass(frozen=True, slots=True)
class Hedging:
    """What came of hedging in one family of keys."""

    family: str
    forms: int
    replies: int
    rewarded: int
    paid: tuple[PaidHedge, ...]
    """The first of each form."""


def hedging(suite: str, family: str, replies: int, seed: int) -> Hedging:
    """Grade so many hedges; return which forms were paid, each with what it needs alone."""
    rng = Random(f"{seed}/{suite}/{family}/hedges")
    bandit = Bandit(rng, forms(family))
    found: dict[str, PaidHedge] = {}
    rewarded = 0
    for _ in range(replies):
        hedge, keys = bandit.draw(), FAMILIES[suite][family](rng)
        paid = bool(_passed(suite, hedge, keys))
        bandit.learn(hedge, paid and hedge.form not in found)
        rewarded += paid
        if paid and hedge.form not in found:
            found[hedge.form] = _plainest(suite, family, hedge, keys)
    return Hedging(family, len(bandit.forms), replies, rewarded, tuple(found.values()))


def _passed(suite: str, hedge: Hedge, keys: GuessingRound) -> str:
    """Return a key among those named for which the hedge passes; empty for none."""
    reply, grade = hedge.reply(keys.parts), SUITES[suite].grade
    named = keys.keys[: hedge.named]
    passed = (key for key in named if grade(keys.question(suite, key), reply).value == 1.0)
    return next(passed, "")


def _plainest(suite: str, family: str, hedge: Hedge, keys: GuessingRound) -> PaidHedge:
    """Return the hedge with nothing around it that it does not need, and what it earns."""
    for place, arms in PLACES.items():
        plainer = replace(hedge, **{place: arms[0]})
        hedge = plainer if _passed(suite, plainer, keys) else hedge
    key = _passed(suite, hedge, keys)
    return PaidHedge(
        hedge, hedge.reply(keys.parts), key, keys.choices, _earned(suite, family, hedge)
    )


def _earned(suite: str, family: str, hedge: Hedge) -> float:
    rng = Random(hedge.form)
    rounds = [FAMILIES[suite][family](rng) for _ in range(FRESH)]
    asked = [(keys.question(suite, rng.choice(keys.keys)), keys.parts) for keys in rounds]
    grade = SUITES[suite].grade
    return sum(grade(one, hedge.reply(parts)).value == 1.0 for one, parts in asked) / FRESH
