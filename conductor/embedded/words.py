"""Between text and tokens, by the tokenizer of a checkpoint, through the `tokenizers` package.

A conductor that was trained from scratch knows no turns: its chat template puts the contents of
all messages one behind the other. Any other template is refused: it would be another prompt.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from tokenizers import Tokenizer

from harness.errors import UserError

CHAT_TEMPLATE = "{% for message in messages %}{{ message['content'] }}{% endfor %}"
"""The template of a checkpoint that is embedded: the contents, and nothing between them."""

TOKENIZER, SETTINGS, TEMPLATE = "tokenizer.json", "tokenizer_config.json", "chat_template.jinja"


@dataclass(frozen=True, slots=True)
class Words:
    """A tokenizer that fits its model."""

    tokenizer: Tokenizer

    def tokens(self, text: str) -> list[int]:
        """Return the tokens of a text; nothing is put before or behind it."""
        return self.tokenizer.encode(text, add_special_tokens=False).ids

    def text(self, tokens: list[int]) -> str:
        """Return the text of tokens, without special ones."""
        return self.tokenizer.decode(tokens, skip_special_tokens=True)

    def texts(self, vocabulary: int) -> list[str]:
        """Return the text of each token on its own; special ones and unknown ones have none."""
        return [self.text([token]) for token in range(vocabulary)]


def read_words(folder: Path, vocabulary: int) -> Words:
    """Return a checkpoint's tokenizer; UserError when it is missing, damaged or another's."""
    path = folder / TOKENIZER
    if not path.is_file():
        raise UserError(f"{folder} is no checkpoint that can be embedded: it has no {TOKENIZER}.")
    try:
        tokenizer = Tokenizer.from_file(str(path))
    except Exception as error:  # the package raises nothing more precise
        raise UserError(f"{path} is no tokenizer that can be read: {error}.") from None
    size = max(tokenizer.get_vocab(with_added_tokens=True).values(), default=-1) + 1
    if not 0 < size <= vocabulary:
        raise UserError(
            f"{path} has {size} tokens and the model knows {vocabulary}: it is another's tokenizer."
        )
    _refuse_template(folder)
    return Words(tokenizer)


def _refuse_template(folder: Path) -> None:
    said = _template(folder)
    if said is not None and _plain(said) != _plain(CHAT_TEMPLATE):
        raise UserError(
            f"{folder} has a chat template of its own, and the embedded provider only puts "
            "contents one behind the other: serve it with vLLM or transformers instead."
        )


def _template(folder: Path) -> str | None:
    own, settings = folder / TEMPLATE, folder / SETTINGS
    if own.is_file():
        return own.read_text()
    if not settings.is_file():
        return None
    try:
        found: object = json.loads(settings.read_bytes())
    except ValueError as error:
        raise UserError(f"{settings} cannot be read: {error}.") from None
    held = cast("dict[str, Any]", found) if isinstance(found, dict) else {}
    said = held.get("chat_template")
    return said if said is None or isinstance(said, str) else json.dumps(said)


def _plain(template: str) -> str:
    """Return a template without what changes nothing: white space and kinds of quotes."""
    return "".join(template.split()).replace('"', "'").replace("{%-", "{%").replace("-%}", "%}")
