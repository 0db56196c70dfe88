"""Keys of clients: who is let in by a file of digests, and how the file changes under a server."""

import hmac
import os
import sys
import tomllib
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from decimal import Decimal
from hashlib import sha256
from pathlib import Path
from types import FrameType

import pytest

from podium.harness.errors import UserError
from podium.serving.access_keys import Caller, Keys, new_key, read_keys
from podium.serving.exchange import Refusal

ALICE, BOB = "podium-alices-key", "podium-bobs-key"


def table(name: str, key: str, more: str = "") -> str:
    return f'[{name}]\nsha256 = "{sha256(key.encode()).hexdigest()}"\n{more}'


@dataclass
class Door:
    """A keys file, those who read it, and what they were told."""

    path: Path
    told: list[str] = field(default_factory=list[str])

    def write(self, text: str) -> "Door":
        self.path.write_text(text)
        return self

    def keys(self) -> Keys:
        return Keys(self.path, self.told.append)


@pytest.fixture
def door(tmp_path: Path) -> Door:
    return Door(tmp_path / "keys.toml").write(table("alice", ALICE) + table("bob", BOB))


def named(keys: Keys, key: str) -> str | None:
    """Return who is let in by a key; `None` for nobody."""
    try:
        return keys.caller({"authorization": f"Bearer {key}"}).name
    except Refusal:
        return None


@pytest.mark.parametrize(
    "headers",
    [
        {"authorization": f"Bearer {BOB}"},
        {"authorization": f"bearer   {BOB} "},
        {"x-api-key": BOB},
        {"authorization": f"Bearer {BOB}", "x-api-key": "something else"},
    ],
)
def test_a_key_is_shown_as_openai_or_as_anthropic_clients_do(
    door: Door, headers: Mapping[str, str]
) -> None:
    assert door.keys().caller(headers) == Caller("bob")


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"authorization": ""},
        {"authorization": "Bearer"},
        {"authorization": "Bearer "},
        {"authorization": f"Basic {BOB}"},
        {"authorization": BOB},
        {"authorization": f"Basic {BOB}", "x-api-key": BOB},
        {"authorization": f"Bearer {BOB}x"},
        {"authorization": f"Bearer {BOB[:-1]}"},
        {"authorization": f"Bearer {BOB} {ALICE}"},
        {"authorization": f"Bearer {sha256(BOB.encode()).hexdigest()}"},
        {"x-api-key": ""},
        {"x-api-key": "\xff\ud800 odd"},
        {"x-api-key": "x" * 100_000},
    ],
    ids=range(14),
)
def test_whatever_is_no_key_is_refused_in_one_sentence_that_quotes_nothing(
    door: Door, headers: Mapping[str, str]
) -> None:
    with pytest.raises(Refusal) as refused:
        door.keys().caller(headers)
    said = str(refused.value)
    assert (refused.value.status, refused.value.kind) == (401, "unauthorised")
    assert said.startswith("A key is needed: ")
    assert "\n" not in said
    assert not any(part in said for part in (BOB, ALICE, "odd", "xxx"))


def test_a_key_is_compared_with_every_entry_in_constant_time(door: Door) -> None:
    keys, compared = door.keys(), list[object]()

    def watch(frame: FrameType, event: str, called: object) -> None:
        if event == "c_call" and called is hmac.compare_digest:
            compared.append(called)

    for key in (ALICE, BOB, "nobody's"):
        compared.clear()
        sys.setprofile(watch)
        try:
            named(keys, key)
        finally:
            sys.setprofile(None)
        assert len(compared) == 2


def test_without_a_file_everybody_is_the_caller_without_a_name() -> None:
    keys = Keys(None, pytest.fail)
    assert keys.caller({}) == keys.caller({"authorization": "Bearer whatever"}) == Caller()


def test_a_table_says_what_its_key_may(door: Door) -> None:
    door.write(
        "# ours\n"
        + table("alice", ALICE, 'max_usd = "5.00"\nmax_usd_per_day = 0.1\nconcurrency = 4\n')
        + table("bob", BOB, 'models = ["podium/moa-lite", "podium/mini"]\n').replace("ab", "AB")
    )
    keys = door.keys()
    alice = keys.caller({"x-api-key": ALICE})
    assert alice == Caller("alice", Decimal("5.00"), Decimal("0.1"), 4)
    assert alice.may_ask("podium/conductor")
    bob = keys.caller({"x-api-key": BOB})
    assert bob.may_ask("podium/moa-lite-20260101-0123", "podium/moa-lite")
    assert not bob.may_ask("podium/conductor")


HEX = "0123456789abcdef" * 4


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[alice\n", r"is not valid TOML: .*line 1"),
        ("[alice]\n", r"line 1, field alice\.sha256: Field required"),
        (
            '[alice]\nsha256 = "podium-secret"\n',
            r"line 2, field alice\.sha256: String should match",
        ),
        (
            f'[alice]\nsha256 = "{HEX}"\nmax_dollars = 3\n',
            r"line 3, field alice\.max_dollars: Extra",
        ),
        (f'[a]\nsha256 = "{HEX}"\n[b]\nconcurrency = 0\n', r"line 3, field b\.sha256: Field req"),
        (f'[a]\nsha256 = "{HEX}"\nconcurrency = true\n', r"line 3, field a\.concurrency: Input"),
        (
            f'[a]\nsha256 = "{HEX}"\nmax_usd = "-1"\n',
            r"line 3, field a\.max_usd: Input should be g",
        ),
        (f'[a]\nsha256 = "{HEX}"\nmax_usd = "NaN"\n', r"line 3, field a\.max_usd: Input should be"),
        (f'[a]\nsha256 = "{HEX}"\nmodels = "all"\n', r"line 3, field a\.models: Input should be"),
        (f'[a]\nsha256 = "{HEX}"\nmodels = [1]\n', r"line 3, field a\.models\.0: Input should be"),
        (f'["a b"]\nsha256 = "{HEX}"\n', r"line 1, field a b: String should match"),
        ('podium = "podium-secret"\n', r"line 1, field podium: Input should be"),
        (f'[a]\nsha256 = "{HEX}"\n[b]\nsha256 = "{HEX.upper()}"\n', r"'a' and 'b' have the same"),
        ("\x00", "is not valid TOML"),
    ],
    ids=range(14),
)
def test_a_mistake_is_told_with_its_line_and_field_and_without_what_stands_there(
    tmp_path: Path, text: str, said: str
) -> None:
    path = tmp_path / "keys.toml"
    path.write_text(text)
    with pytest.raises(UserError, match=said) as refused:
        read_keys(path)
    assert str(path) in str(refused.value)
    assert "podium-secret" not in str(refused.value)


def test_a_file_that_is_not_there_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"none\.toml cannot be read \(No such file"):
        Keys(tmp_path / "none.toml", pytest.fail)


def test_a_key_is_revoked_and_another_added_without_a_restart(door: Door) -> None:
    keys = door.keys()
    assert named(keys, ALICE) == "alice"
    door.write(table("carol", "podium-carols"))
    assert (named(keys, ALICE), named(keys, "podium-carols")) == (None, "carol")
    door.write("")
    assert named(keys, "podium-carols") is None
    assert door.told == []


def test_a_version_of_the_same_size_and_time_is_read_all_the_same(door: Door) -> None:
    keys, was = door.keys(), door.path.stat()
    text = door.path.read_text().replace("alice", "alina")
    while door.path.stat().st_ctime_ns == was.st_ctime_ns:  # a file system's clock has coarse ticks
        door.write(text)
    os.utime(door.path, ns=(was.st_atime_ns, was.st_mtime_ns))
    assert door.path.stat().st_size == was.st_size
    assert named(keys, ALICE) == "alina"


def test_a_broken_version_is_told_once_and_the_one_before_stays_valid(door: Door) -> None:
    keys = door.keys()
    door.write("[alice\n")
    assert [named(keys, ALICE) for _ in range(3)] == ["alice"] * 3
    (said,) = door.told
    assert "is not valid TOML" in said
    assert said.endswith("; the server keeps the keys that it read before.")
    door.path.unlink()
    assert [named(keys, ALICE) for _ in range(3)] == ["alice"] * 3
    assert len(door.told) == 2
    door.write(table("bob", BOB))
    assert (named(keys, ALICE), named(keys, BOB)) == (None, "bob")
    assert len(door.told) == 2


@pytest.mark.parametrize("mode", [0o620, 0o602])
def test_a_file_that_others_can_write_is_read_with_a_warning(door: Door, mode: int) -> None:
    door.path.chmod(mode)
    assert named(door.keys(), ALICE) == "alice"
    assert door.told == [
        f"Other users can write {door.path} and add keys. Run chmod go-w {door.path}."
    ]


def test_a_new_key_opens_the_door_and_stands_nowhere(tmp_path: Path) -> None:
    path = tmp_path / "keys.toml"
    key = new_key(path, "alice")
    assert key.startswith("podium-")
    assert len(key) == len("podium-") + 43
    assert key not in path.read_text()
    assert path.stat().st_mode & 0o777 == 0o600
    assert named(Keys(path, pytest.fail), key) == "alice"
    assert [one.name for one in tmp_path.iterdir()] == ["keys.toml"]


@pytest.mark.parametrize("end", ["", "\n", "# the end"])
def test_a_new_key_leaves_all_that_was_there_as_it_was(door: Door, end: str) -> None:
    before = "# ours, in order\n" + table("alice", ALICE, "concurrency = 2  # few") + end
    door.write(before).path.chmod(0o640)
    keys = door.keys()
    key = new_key(door.path, "bob")
    text = door.path.read_text()
    assert text.startswith(before)
    assert [*tomllib.loads(text)] == ["alice", "bob"]
    assert door.path.stat().st_mode & 0o777 == 0o640
    assert (named(keys, ALICE), named(keys, key)) == ("alice", "bob")


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("alice", table("alice", ALICE), "already has a key 'alice'"),
        ("a b", "", "is not a valid key name"),
        ("a.b", "", "is not a valid key name"),
        ("a\n", "", "is not a valid key name"),
        ("", "", "is not a valid key name"),
        ("bob", "[alice\n", "is not valid TOML"),
        ("bob", "[alice]\n", "line 1, field alice.sha256"),
    ],
)
def test_a_key_that_cannot_be_made_changes_nothing(
    door: Door, name: str, text: str, said: str
) -> None:
    door.write(text)
    with pytest.raises(UserError, match=said):
        new_key(door.path, name)
    assert door.path.read_text() == text
    assert [one.name for one in door.path.parent.iterdir()] == ["keys.toml"]


def test_a_key_in_a_folder_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"cannot be written \(No such file"):
        new_key(tmp_path / "none" / "keys.toml", "alice")


def test_of_keys_made_at_once_none_is_lost(tmp_path: Path) -> None:
    path = tmp_path / "keys.toml"

    def made(number: int) -> str:
        try:
            return new_key(path, f"key-{number}")
        except UserError as error:
            return str(error)

    with ThreadPoolExecutor(8) as threads:
        said = {f"key-{number}": one for number, one in enumerate(threads.map(made, range(40)))}
    found = {name: key for name, key in said.items() if key.startswith("podium-")}
    refused = [one for one in said.values() if one not in found.values()]
    assert found
    assert all("another process is adding a key" in one for one in refused)
    keys = Keys(path, pytest.fail)
    assert [named(keys, key) for key in found.values()] == [*found]
    assert len(read_keys(path)) == len(found)


def test_a_file_that_is_a_link_stays_one(tmp_path: Path) -> None:
    real = tmp_path / "real.toml"
    real.write_text("")
    link = tmp_path / "keys.toml"
    link.symlink_to(real)
    keys = Keys(link, pytest.fail)
    key = new_key(link, "alice")
    assert link.is_symlink()
    assert named(keys, key) == "alice"
