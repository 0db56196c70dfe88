"""Settings that would run code: files that people share, such as a pool, may not hold any."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

RUNS_CODE = re.compile(
    r".*remote_code.*|code_revision|auto_map|custom_generate|weights_only|allow_pickle"
    r"|allow_all_kernels|use_kernels|kernel_config"  # a kernel is a compiled module
    r"|.*plugins?|.*_cls|.*module(_path)?|middleware|.*logits_processors?|.*executor_backend"
)
"""Names of such settings in transformers, TRL, vLLM and SGLang, in lower case with underscores."""
IN_TEXT = re.compile(r"trust.?remote.?code|custom_generate|allow_all_kernels|weights_only", re.I)
"""In a text that a library reads as JSON or as options of a command."""
ATTENTION = "attn_implementation"  # `sdpa`, or OWNER/NAME: a kernel of the hub, which is code

Place = tuple[str | int, ...]


def code_settings(settings: object, place: Place = ()) -> Iterator[Place]:
    """Yield the place of each setting, at any depth, that would let a library run code.

    >>> [*code_settings({"init": {"trust-remote-code": True}, "top_k": 5})]
    [('init', 'trust-remote-code')]
    """
    if isinstance(settings, Mapping):
        for key, value in cast(Mapping[Any, Any], settings).items():
            inner = (*place, str(key))
            runs_code = RUNS_CODE.fullmatch(re.sub(r"\W", "_", str(key).lower().strip("- ")))
            yield from (inner,) if runs_code else code_settings(value, inner)
    elif isinstance(settings, Sequence) and not isinstance(settings, str):
        for number, value in enumerate(cast(Sequence[Any], settings)):
            yield from code_settings(value, (*place, number))
    elif isinstance(settings, str):
        is_kernel = ATTENTION in place and "/" in settings
        if is_kernel or IN_TEXT.search(settings):
            yield place


def code_refusal(settings: object) -> tuple[Place, str] | None:
    """Return the first such setting's place and a sentence about it; None if there is none."""
    for place in code_settings(settings):
        name = ".".join(map(str, place))
        return place, f"{name} would run code that comes with a model: leave it out"
    return None
