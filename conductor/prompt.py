"""What a conductor is told: the structure of the paper's prompt in our own words.

Order as in arXiv 2512.04388, figure 13: role, what a step is, how steps run, the form of the
output, four worked examples, the question, the numbered models. The examples are ours and far from
any exam here; the paper's default ones are out of distribution too (appendix E). Models are
ordinals; their role cards are shown unless hidden (the paper shows bare ordinals, appendix E).
"""

from collections.abc import Sequence

from inspect_ai.model import ChatMessage, ChatMessageAssistant, ChatMessageUser

from harness.workflow import MAX_STEPS, Malformed

INSTRUCTIONS = """\
You direct a group of language models with different strengths. You never answer a question
yourself: you write a plan, and the models you pick carry it out.

Below you find a user question and a numbered list of the available models. Write a plan of
at most {max_steps} steps. A step is three things: the number of the model that does it, a subtask
in plain words, and which earlier steps that model may read. A subtask can ask a model to solve the
question from scratch, to do one part of it, to look something up, to improve or check earlier work,
or to do anything else that helps the models after it.

How the plan is run: steps run in order. Each model is sent the user question and its own subtask.
If its access entry allows, it also sees the subtasks and replies of earlier steps, as the earlier
turns of a conversation. The reply of the last step is returned to the user as the answer, so the
last step must give the final answer in the form that the question asks for.

Think about the question first, as long as you need. Then end with exactly these three Python lists,
all of the same length, one entry per step:

model_id = [...]      # whole numbers from the list of models
subtasks = [...]      # strings
access_list = [...]   # [] to read nothing, ["all"] to read all earlier steps

Use few steps for easy questions. Steps that do not read each other cost less time.
"""

EXAMPLES = """\
Here are four examples, written for another group of seven models.

Example 1. Question: "Which is longer, the word for 'butterfly' in Finnish or in Italian?"
One model that knows languages can do this alone.
model_id = [4]
subtasks = ["Name both words, count their letters and answer the question."]
access_list = [[]]

Example 2. Question: "A recipe for 6 people needs 450 g of flour and 4 eggs. Eggs come in boxes of
10. How many boxes are needed for 40 people, and how much flour?"
The arithmetic is short but easy to get wrong, so a second model should check it.
model_id = [1, 5]
subtasks = ["Work out the number of egg boxes and the flour in kilograms, step by step.", \
"Check every step above, correct mistakes, and state both results."]
access_list = [[], ["all"]]

Example 3. Question: "Write a two-line rhyme about a lighthouse in which no word has an e."
Ideas vary, so two models try independently and a third one picks and repairs.
model_id = [6, 2, 3]
subtasks = ["Write three candidate rhymes.", "Write three candidate rhymes.", \
"Discard candidates that contain the letter e, improve the best one, and give only the rhyme."]
access_list = [[], [], ["all"]]

Example 4. Question: "Ferries leave at 7:40 and every 35 minutes after that, the crossing takes 50
minutes, and the museum opens at 10:00. What is the latest ferry with which one still waits at the
museum door, if the walk from the pier takes 12 minutes?"
First settle what is asked, then compute, then check against the timetable, then put it into form.
model_id = [0, 1, 5, 4]
subtasks = ["List the given times and say precisely what must be found.", \
"List the departures with the arrival at the museum and pick the latest one before opening.", \
"Recompute the arrival of the chosen ferry and of the next one; correct a wrong choice.", \
"State the departure time of the ferry as HH:MM."]
access_list = [[], ["all"], ["all"], ["all"]]
"""

QUESTION = "USER QUESTION:"
MODELS = "AVAILABLE LANGUAGE MODELS:"

RETRY = """\
This plan cannot be run: {reason}.
Write it again: end with the three Python lists model_id, subtasks and access_list, in this order,
of equal length and with at most {max_steps} entries each."""


def plan_request(
    question: str, cards: Sequence[str], max_steps: int = MAX_STEPS
) -> list[ChatMessage]:
    """Return what a conductor is sent; `cards` has one entry per model, empty to hide who it is."""
    models = [f"Model {at}: {card}" if card else f"Model {at}" for at, card in enumerate(cards)]
    parts = (
        INSTRUCTIONS.format(max_steps=max_steps),
        EXAMPLES,
        f"{QUESTION}\n{question}\n",
        "\n".join((MODELS, *models)),
    )
    return [ChatMessageUser(content="\n".join(parts))]


def retry_request(said: str, malformed: Malformed, max_steps: int = MAX_STEPS) -> list[ChatMessage]:
    """Return the turns that follow a plan that cannot be run: what was said, and what is wrong."""
    reason = RETRY.format(reason=malformed.reason, max_steps=max_steps)
    return [ChatMessageAssistant(content=said), ChatMessageUser(content=reason)]
