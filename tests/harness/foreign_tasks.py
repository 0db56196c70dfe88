"""Inspect tasks as others write them: with tools, a simulated user, limits, and what is wrong."""

import anyio
from inspect_ai import Task, task
from inspect_ai.agent import react
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import ChatMessageUser, get_model
from inspect_ai.scorer import (
    Score,
    Scorer,
    Target,
    answer,
    choice,
    includes,
    mean,
    model_graded_qa,
    scorer,
)
from inspect_ai.solver import (
    Generate,
    Solver,
    TaskState,
    generate,
    multiple_choice,
    prompt_template,
    solver,
    system_message,
    use_tools,
)
from inspect_ai.tool import Tool, tool

SEEN = "There is 7 in"
LOOK = "Look first:"


@tool
def look() -> Tool:
    async def execute(place: str) -> str:
        """Look at a place.

        Args:
            place: where to look.
        """
        return f"{SEEN} the {place}."

    return execute


def dataset(*ids: str, first: str = "Guess:") -> MemoryDataset:
    """Return a sample of each id; two may have the same."""
    asked = [(id, f"{first} what is in box {id}?") for id in ids]
    return MemoryDataset([Sample(id=id, input=text, target="7") for id, text in asked])


@task
def looking(n: int = 2) -> Task:
    """Tools, and a loop that lasts until none is called."""
    return Task(
        dataset=dataset(*map(str, range(n)), first=LOOK),
        solver=[use_tools(look()), generate()],
        scorer=includes(),
        metadata={"publishable": True},
    )


@task
def reacting() -> Task:
    """Tools that only the agent of the task knows, which asks its model itself."""
    return Task(dataset=dataset("a", first=LOOK), solver=react(tools=[look()]), scorer=includes())


@solver
def with_a_user() -> Solver:
    async def solve(state: TaskState, generate: Generate) -> TaskState:
        for _ in range(2):
            state = await generate(state)
            said = await get_model(role="user").generate([ChatMessageUser(content="Reply.")])
            state.messages.append(ChatMessageUser(content=said.completion))
        return state

    return solve


@task
def talking() -> Task:
    """Somebody else speaks, too."""
    return Task(dataset=dataset("a", "b"), solver=with_a_user(), scorer=includes())


@task
def limited() -> Task:
    """Ended by its author after the first reply."""
    return Task(
        dataset=dataset("a", first=LOOK),
        solver=[use_tools(look()), generate()],
        scorer=includes(),
        message_limit=2,
        metadata={"publishable": True},
    )


@solver
def twice_at_once() -> Solver:
    async def solve(state: TaskState, generate: Generate) -> TaskState:
        async with anyio.create_task_group() as tasks:
            for n in range(2):
                tasks.start_soon(get_model().generate, f"Part {n}?")
        return await generate(state)

    return solve


@task
def parallel() -> Task:
    """Two agents of one sample ask side by side."""
    return Task(dataset=dataset("a"), solver=twice_at_once(), scorer=includes())


@scorer(metrics=[mean()])
def in_words() -> Scorer:
    async def score(state: TaskState, target: Target) -> Score:
        return Score(value="rather good")

    return score


@task
def judged_in_words() -> Task:
    return Task(dataset=dataset("a"), solver=generate(), scorer=in_words())


@scorer(metrics=[mean()])
def in_stars() -> Scorer:
    async def score(state: TaskState, target: Target) -> Score:
        return Score(value=7.0)

    return score


@task
def judged_in_stars() -> Task:
    """The scorer returns a number that is no share."""
    return Task(dataset=dataset("a"), solver=generate(), scorer=in_stars())


@task
def unscored() -> Task:
    return Task(dataset=dataset("a"), solver=generate())


@task
def twice() -> Task:
    return Task(dataset=dataset("a", "a"), solver=generate(), scorer=includes())


@task
def empty() -> Task:
    return Task(dataset=MemoryDataset([]), solver=generate(), scorer=includes())


@task
def raising() -> Task:
    raise RuntimeError("no data\nhere")


@task
def choosing() -> Task:
    """One call, whose letters the task's solver reads and its scorer compares."""
    asked = Sample(id="a", input="Which is a colour?", choices=["seven", "red"], target="B")
    return Task(dataset=MemoryDataset([asked]), solver=multiple_choice(), scorer=choice())


@task
def adding(n: int = 3) -> Task:
    """One call, with instructions before the question."""
    solvers = [system_message("You add."), prompt_template("{prompt}\nEnd in the sum."), generate()]
    asked = [Sample(id=f"{i}", input=f"{i} + 1?", target=str(i + 1)) for i in range(n)]
    return Task(
        dataset=MemoryDataset(asked),
        solver=solvers,
        scorer=answer("line"),
        metadata={"publishable": True},
    )


@task
def judged() -> Task:
    """Graded by a model."""
    return Task(dataset=dataset("a"), solver=generate(), scorer=model_graded_qa())


@task
def boxed() -> Task:
    return Task(dataset=dataset("a"), solver=generate(), scorer=includes(), sandbox="local")


@task
def twice_asked() -> Task:
    return Task(dataset=dataset("a"), solver=[generate(), generate()], scorer=includes())


@task
def guessing() -> Task:
    return Task(dataset=dataset("a"), solver=generate(), scorer=includes())


@solver
def with_a_model_of_its_own() -> Solver:
    async def solve(state: TaskState, generate: Generate) -> TaskState:
        state = await generate(state)
        said = await get_model("scripted/outsider", memoize=False).generate("Is it so?")
        state.messages.append(ChatMessageUser(content=said.completion))
        return await generate(state)

    return solve


@task
def buying() -> Task:
    """Its own code asks a model that nobody has named a price of."""
    return Task(dataset=dataset("a"), solver=with_a_model_of_its_own(), scorer=includes())


@scorer(metrics=[mean()])
def by_a_model_of_its_own() -> Scorer:
    async def score(state: TaskState, target: Target) -> Score:
        said = await get_model("scripted/outsider", memoize=False).generate("Is it right?")
        return Score(value=float(said.completion == "yes"))

    return score


@task
def judged_by_its_own() -> Task:
    """Its scorer does."""
    return Task(dataset=dataset("a"), solver=generate(), scorer=by_a_model_of_its_own())
