"""Half a character stops no file from being written, and is written the same everywhere."""

import json
from typing import Any

import orjson
from hypothesis import given
from hypothesis import strategies as st
from inspect_ai._util.json import to_json_safe
from inspect_ai.model import ChatMessageUser, ModelOutput

from podium.harness.ledger.call import canonical
from podium.harness.request import request_digest
from podium.harness.text import make_storable, storable

ANY = st.text(st.characters(codec=None))
VALUES = st.recursive(
    ANY | st.none() | st.booleans() | st.integers(),
    lambda below: st.lists(below, max_size=3) | st.dictionaries(ANY, below, max_size=3),
    max_leaves=5,
)


@given(ANY)
def test_a_text_is_stored_as_inspect_stores_it_and_only_once(text: str) -> None:
    assert storable(text) == orjson.loads(to_json_safe(text))
    assert storable(storable(text)) == storable(text)


@given(VALUES)
def test_any_json_has_a_canonical_form_that_reads_back_as_itself(value: Any) -> None:
    written = canonical(value)
    assert canonical(json.loads(written)) == written
    assert json.loads(written) == make_storable(value)


def test_a_reply_is_rewritten_in_place_down_to_the_names_of_its_fields() -> None:
    output = ModelOutput.from_content("m", "seven \ud83d")
    output.metadata = {"a\udc00": ["\ud800", {"b": 1}]}
    assert make_storable(output) is output
    assert output.completion == output.message.text == "seven \\ud83d"
    assert output.metadata == {"a\\udc00": ["\\ud800", {"b": 1}]}


def test_a_whole_character_beyond_the_first_plane_stays() -> None:
    assert make_storable({"a": "\U0001f600 é"}) == {"a": "\U0001f600 é"}


def test_what_is_too_deep_to_look_at_is_left_alone() -> None:
    deep: Any = "\ud800"
    for _ in range(300):
        deep = [deep]
    assert make_storable(deep) is not None


def test_a_prompt_that_was_stored_has_a_digest() -> None:
    assert request_digest([ChatMessageUser(content=storable("\ud800"))])
