"""Inspect model provider `embedded/NAME`: runs a small checkpoint in this process, in NumPy."""

import hashlib
import json
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, cast

import anyio
from inspect_ai.model import (
    ChatCompletionChoice,
    ChatMessage,
    ChatMessageAssistant,
    ChatMessageUser,
    GenerateConfig,
    ModelAPI,
    ModelOutput,
    ModelUsage,
)
from inspect_ai.tool import ToolChoice, ToolInfo
from jinja2 import TemplateError
from jinja2.sandbox import ImmutableSandboxedEnvironment
from tokenizers import Tokenizer

from podium.conductor.base_model import model_folder
from podium.conductor.checkpoint import ADAPTED, WEIGHTS, checkpoint_folder
from podium.conductor.decode import (
    TOGETHER,
    Completion,
    DecodeOptions,
    DecodeQueue,
    decode,
    one_thread,
)
from podium.conductor.decoder import CONFIG, Decoder, read_decoder, read_shape
from podium.conductor.guided_decoding import Guide, guide_maker
from podium.harness.context import sample_index
from podium.harness.errors import UserError
from podium.harness.request import request_digest
from podium.harness.suite import TaskRefusal

CHAT_TEMPLATE = "{% for message in messages %}{{ message['content'] }}{% endfor %}"
TOKENIZER, SETTINGS, TEMPLATE = "tokenizer.json", "tokenizer_config.json", "chat_template.jinja"
QUICK = 20_000_000  # maximum parameters of a model that replies in milliseconds, without a thread
Say = Callable[[Sequence[ChatMessage]], str]  # messages -> reply, decoded greedily
Render = Callable[[Sequence[ChatMessage]], str]
PLAN_TOKENS = 256  # maximum tokens of one plan; a plan of one step has some 40


def read_tokenizer(folder: Path, vocabulary: int) -> Tokenizer:
    """Load a checkpoint's tokenizer; UserError if it is missing, damaged or of another model."""
    path = folder / TOKENIZER
    if not path.is_file():
        raise UserError(
            f"{folder} is not a checkpoint for `embedded/`: it has no {TOKENIZER}. Copy its "
            "model's file there."
        )
    try:
        tokenizer = Tokenizer.from_file(str(path))
    except Exception as error:  # the package raises nothing more precise
        raise UserError(f"{path} cannot be read as a tokenizer: {error}. Copy it again.") from None
    size = max(tokenizer.get_vocab(with_added_tokens=True).values(), default=-1) + 1
    if not 0 < size <= vocabulary:
        raise UserError(
            f"{path} has {size} tokens, but the model has {vocabulary}: this is the tokenizer of "
            "another model. Copy the model's own."
        )
    return tokenizer


def read_template(folder: Path) -> Render:
    """Return a function that renders messages as a prompt, by a checkpoint's chat template."""
    path = folder / SETTINGS
    try:
        parsed: object = json.loads(path.read_bytes()) if path.is_file() else {}
    except ValueError as error:
        raise UserError(f"{path} cannot be read: {error}. Copy it again.") from None
    settings = cast("dict[str, Any]", parsed) if isinstance(parsed, dict) else {}
    file = folder / TEMPLATE
    text = file.read_text() if file.is_file() else settings.get("chat_template") or CHAT_TEMPLATE
    marks = {name: settings.get(name) for name in ("bos_token", "eos_token")}
    rendering = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)

    def render(messages: Sequence[ChatMessage]) -> str:
        turns = [{"role": message.role, "content": message.text} for message in messages]
        try:
            template = rendering.from_string(text)
            return template.render(messages=turns, add_generation_prompt=True, **marks)
        except (TemplateError, TypeError) as error:
            raise UserError(
                f"The chat template of {folder} is not supported by the embedded decoder "
                f"({error}): serve it with vLLM or transformers instead."
            ) from None

    return render


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A loaded checkpoint: a model, its tokenizer, its chat template and its request queue."""

    model: Decoder
    tokenizer: Tokenizer
    render: Render
    guide: Callable[[str], Guide]  # regular expression -> guide that allows only its tokens
    queue: DecodeQueue

    def tokens(self, messages: Sequence[ChatMessage]) -> list[int]:
        """Return the token ids of messages, rendered by the chat template."""
        return self.tokenizer.encode(self.render(messages), add_special_tokens=False).ids

    def text(self, tokens: list[int]) -> str:
        """Return the text of token ids, without special tokens."""
        return self.tokenizer.decode(tokens, skip_special_tokens=True)

    @property
    def quick(self) -> bool:
        """Whether the model replies in milliseconds, so that it runs in the caller's thread."""
        return self.model.parameters <= QUICK

    def decode(self, prompt: list[int], options: DecodeOptions) -> Completion:
        """Return a prompt's completion; large models batch the requests of several threads."""
        if not self.quick:
            return self.queue.decode(prompt, options)
        with one_thread():
            return decode(self.model, prompt, options)

    def greedy(self, prompt: str, max_tokens: int) -> str:
        """Return the reply to one user message, decoded greedily."""
        tokens = self.tokens([ChatMessageUser(content=prompt)])
        return self.text(self.decode(tokens, DecodeOptions(max_tokens=max_tokens)).tokens)


def open_checkpoint(name: str) -> Checkpoint:
    """Load a checkpoint by name or path (cached); UserError if it is missing or not supported."""
    folder = checkpoint_folder(name)
    paths = (folder / file for file in (CONFIG, WEIGHTS, ADAPTED, TOKENIZER))
    ages = tuple(path.stat().st_mtime_ns for path in paths if path.is_file())
    return _read_checkpoint(folder, ages)


@lru_cache(maxsize=8)
def _read_checkpoint(folder: Path, ages: tuple[int, ...]) -> Checkpoint:
    model, words = read_decoder(folder), model_folder(folder)
    shape = model.shape
    tokenizer = read_tokenizer(words, shape.vocabulary)

    def texts() -> list[str]:
        every = [[token] for token in range(shape.vocabulary)]
        return tokenizer.decode_batch(every, skip_special_tokens=True)

    guide = guide_maker(texts, shape.ends)
    return Checkpoint(model, tokenizer, read_template(words), guide, DecodeQueue(model))


def fitting(folder: Path, spare: int) -> Callable[[str], bool]:
    """Return a function that tells whether a user message leaves `spare` tokens of context free."""
    shape, words = read_shape(folder), model_folder(folder)
    tokenizer, render = read_tokenizer(words, shape.vocabulary), read_template(words)

    def fits(text: str) -> bool:
        prompt = render([ChatMessageUser(content=text)])
        return len(tokenizer.encode(prompt, add_special_tokens=False).ids) + spare <= shape.context

    return fits


def greedy_speaker(folder: Path) -> Say:
    """Return a function: messages -> greedy reply. UserError if the checkpoint is unusable."""
    checkpoint = open_checkpoint(str(folder.resolve()))
    return lambda messages: checkpoint.greedy("".join(m.text for m in messages), PLAN_TOKENS)


class EmbeddedAPI(ModelAPI):
    """An Inspect model that runs one checkpoint in this process."""

    def __init__(
        self,
        model_name: str,
        base_url: str | None = None,
        api_key: str | None = None,
        config: GenerateConfig | None = None,
        **model_args: Any,
    ) -> None:
        """Load a checkpoint; TaskRefusal (a UserError) if it is missing, damaged or unsupported."""
        super().__init__(model_name, base_url, api_key, [], config or GenerateConfig())
        try:
            self.seed = model_args.pop("seed", 0)
            if model_args or not isinstance(self.seed, int):
                wrong = next(iter(model_args), "seed")
                hint = "Give no argument but seed, a whole number"
                raise UserError(f"embedded/{model_name}: argument {wrong!r} is invalid. {hint}.")
            self.checkpoint = open_checkpoint(model_name)
        except UserError as error:  # Inspect's commands print it as one sentence
            raise TaskRefusal(str(error)) from None
        self._asked: Counter[str] = Counter()

    async def generate(
        self,
        input: list[ChatMessage],
        tools: list[ToolInfo],
        tool_choice: ToolChoice,
        config: GenerateConfig,
    ) -> ModelOutput:
        """Reply to a chat, which the checkpoint's chat template renders as a prompt."""
        _refuse_settings(self.model_name, tools, config)
        started = time.monotonic()
        checkpoint = self.checkpoint
        prompt = checkpoint.tokens(input)
        limits = (config.extra_body or {}).get("structured_outputs")  # vLLM's parameter
        guide = checkpoint.guide(str(limits["regex"])) if limits and limits["regex"] else None
        digest = request_digest(input)
        sample = sample_index(digest, self._asked)
        key = (
            self.seed if config.seed is None else config.seed,
            *(self.model_name, digest, sample.epoch, sample.occurrence),
        )
        seed = int(hashlib.sha256(repr(key).encode()).hexdigest(), 16)
        options = DecodeOptions(config.temperature or 0.0, seed, config.max_tokens, guide)
        if checkpoint.quick:
            completion = checkpoint.decode(prompt, options)
        else:
            completion = await anyio.to_thread.run_sync(checkpoint.decode, prompt, options)
        return self._output(prompt, completion, time.monotonic() - started)

    def _output(self, prompt: list[int], completion: Completion, took_s: float) -> ModelOutput:
        content = self.checkpoint.text(completion.tokens)
        if completion.stop == "model_length" and not completion.written:
            room = self.checkpoint.model.shape.context
            content = (
                f"The prompt has {len(prompt)} tokens, and this model reads fewer than {room}."
            )
        message = ChatMessageAssistant(content=content, model=self.model_name, source="generate")
        return ModelOutput(
            model=self.model_name,
            choices=[ChatCompletionChoice(message=message, stop_reason=completion.stop)],
            usage=ModelUsage(
                input_tokens=len(prompt),
                output_tokens=completion.written,
                total_tokens=len(prompt) + completion.written,
                reasoning_tokens=0,
            ),
            time=took_s,
        )

    def max_connections(self) -> int:
        """Return the maximum number of parallel calls; a large model decodes them as one batch."""
        return 64 if self.checkpoint.quick else TOGETHER


def _refuse_settings(name: str, tools: list[ToolInfo], config: GenerateConfig) -> None:
    """Raise UserError if a request has a setting that this provider would silently ignore."""
    body = config.extra_body or {}
    structured: Any = body.get("structured_outputs")
    only_regex = len(body) == 1 and isinstance(structured, dict) and [*structured] == ["regex"]
    settings = {
        "tools": bool(tools),
        "top_p": config.top_p not in (None, 1),
        "top_k": config.top_k not in (None, 0, -1),
        "stop_seqs": bool(config.stop_seqs),
        "num_choices": config.num_choices not in (None, 1),
        "frequency_penalty": bool(config.frequency_penalty),
        "presence_penalty": bool(config.presence_penalty),
        "logprobs": bool(config.logprobs),
        "response_schema": config.response_schema is not None,
        "extra_body other than structured_outputs.regex": bool(body) and not only_regex,
    }
    if setting := next((setting for setting, there in settings.items() if there), None):
        raise UserError(
            f"embedded/{name} does not support {setting}: leave it out, or serve the model."
        )
