"""Majority: every worker answers once, and the most frequent answer wins."""

from collections import Counter

from podium import (
    Answer,
    Calls,
    Pool,
    Question,
    Session,
    Step,
    System,
    SystemCard,
    exactly,
    normalised,
    registered,
)


def majority_system() -> System:
    """Return the system; each argument that it had would be one of `-S name=value`."""

    async def answer(question: Question, pool: Pool) -> Answer:
        session = Session(question, pool)
        replies = await session.ask_all([Step(worker) for worker in pool.workers])
        answers = [normalised(question.kind, reply.text) for reply in replies]
        votes = Counter(found for found in answers if found is not None)
        winner = votes.most_common(1)[0][0] if votes else answers[0]
        return session.answer(replies[answers.index(winner)].text)

    return answer


registered(majority_system)  # as `majority`, where Inspect finds it

majority = SystemCard(
    name="majority",
    solver="majority",
    summary="Every worker answers once; the most frequent answer wins.",
    source="mine",
    # The audit holds a run against these calls.
    calls=Calls("one for each worker", exactly(lambda workers, args: workers)),
)
