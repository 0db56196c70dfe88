"""The filter of system calls, run by a small machine for its language, for both architectures."""

import errno
import re
import struct
from collections.abc import Mapping
from pathlib import Path

import pytest

from podium.sandbox.seccomp import (
    AARCH64,
    ALLOW,
    KILL,
    NEWEST,
    NO_PERMISSION,
    NOT_THERE,
    REFUSE,
    RULES,
    SAME_USER,
    X86_64,
    Rule,
    filter_bytes,
)

ARCHITECTURES = (X86_64, AARCH64)
I386 = 0x40000003
NO = REFUSE | errno.EPERM
BOTH = {**RULES, **SAME_USER}
HEADERS = (
    Path("/usr/include/x86_64-linux-gnu/asm/unistd_64.h"),
    Path("/usr/include/asm-generic/unistd.h"),
)


def verdict(
    architecture: int, number: int, *arguments: int, rules: Mapping[str, Rule] = RULES
) -> int:
    """Run the filter on one call as the kernel does: struct seccomp_data in, a verdict out."""
    values = [*arguments, 0, 0, 0, 0, 0, 0][:6]
    data = struct.pack("=IIQ6Q", number, architecture, 0, *values)
    code = list(struct.iter_unpack("=HBBI", filter_bytes(rules)))
    at, loaded = 0, 0
    while True:
        operation, if_true, if_false, value = code[at]
        at += 1
        match operation:
            case 0x20:  # BPF_LD, BPF_W, BPF_ABS
                loaded = struct.unpack_from("=I", data, value)[0]
            case 0x05:  # BPF_JMP, BPF_JA
                at += value
            case 0x15:  # BPF_JEQ
                at += if_true if loaded == value else if_false
            case 0x35:  # BPF_JGE
                at += if_true if loaded >= value else if_false
            case 0x45:  # BPF_JSET
                at += if_true if loaded & value else if_false
            case 0x06:  # BPF_RET
                return value
            case _:
                raise AssertionError(f"unknown instruction {operation:#x}")


def number(name: str, architecture: int) -> int:
    return BOTH[name].numbers[ARCHITECTURES.index(architecture)]


@pytest.mark.parametrize("which", [0, 1], ids=("x86_64", "aarch64"))
def test_every_call_that_is_named_is_refused(which: int) -> None:
    for calls, error in ((NO_PERMISSION, errno.EPERM), (NOT_THERE, errno.ENOSYS)):
        for name, numbers in calls.items():
            refused = numbers[which]
            if refused is not None:
                assert verdict(ARCHITECTURES[which], refused) == REFUSE | error, name


@pytest.mark.parametrize("architecture", ARCHITECTURES, ids=("x86_64", "aarch64"))
@pytest.mark.parametrize(
    ("name", "arguments", "expected"),
    [
        ("clone", (0x3D0F00,), ALLOW),  # a thread, as glibc starts one
        ("clone", (17,), ALLOW),  # fork
        ("clone", (0x10000000 | 17,), NO),
        ("clone", (0x40000000 | 17,), NO),
        ("personality", (0xFFFFFFFF,), ALLOW),
        ("personality", (0x0040000,), NO),  # ADDR_NO_RANDOMIZE
        ("ioctl", (0, 0x5401), ALLOW),
        ("ioctl", (0, 0x5412), NO),
        ("ioctl", (0, 0xFFFFFFFF00005412), NO),  # the kernel looks at the lower half only
        ("socket", (1,), ALLOW),
        ("socket", (2,), ALLOW),
        ("socket", (40,), REFUSE | errno.EAFNOSUPPORT),
        ("prlimit64", (0, 7), ALLOW),
        ("prlimit64", (1, 7), NO),
        ("setpriority", (0, 0), ALLOW),
        ("setpriority", (0, 1), NO),
        ("setpriority", (2, 0), NO),
        ("kill", (3, 9), ALLOW),
        ("kill", (0, 9), ALLOW),
        ("kill", (2, 19), NO),
        ("kill", (0xFFFFFFFFFFFFFFFF, 19), NO),
        ("pidfd_send_signal", (5, 9), NO),
        ("fcntl", (1, 4), ALLOW),
        ("fcntl", (1, 8), NO),
    ],
)
def test_a_call_is_judged_by_its_arguments(
    architecture: int, name: str, arguments: tuple[int, ...], expected: int
) -> None:
    assert verdict(architecture, number(name, architecture), *arguments, rules=BOTH) == expected


def test_where_every_run_has_its_own_user_the_kernel_judges_signals() -> None:
    assert verdict(X86_64, number("kill", X86_64), 0xFFFFFFFFFFFFFFFF, 9) == ALLOW


def test_what_the_filter_does_not_name_is_allowed() -> None:
    named = {numbers[0] for calls in (NO_PERMISSION, NOT_THERE) for numbers in calls.values()}
    named |= {rule.numbers[0] for rule in RULES.values()}
    for call in set(range(NEWEST + 1)) - named:
        assert verdict(X86_64, call) == ALLOW, call


@pytest.mark.parametrize("architecture", ARCHITECTURES, ids=("x86_64", "aarch64"))
def test_a_call_that_is_newer_than_the_lists_does_not_exist(architecture: int) -> None:
    assert verdict(architecture, NEWEST) == ALLOW
    assert verdict(architecture, NEWEST + 1) == REFUSE | errno.ENOSYS
    assert verdict(architecture, 547) == REFUSE | errno.ENOSYS


def test_a_foreign_architecture_kills_the_process() -> None:
    assert verdict(I386, 20) == KILL
    assert verdict(X86_64, 0x40000000 | 39) == KILL  # x32


@pytest.mark.parametrize("which", [0, 1], ids=("x86_64", "aarch64"))
def test_the_numbers_are_those_of_the_kernels_headers(which: int) -> None:
    if not HEADERS[which].exists():
        pytest.skip(f"no kernel headers here: {HEADERS[which]}")
    text = HEADERS[which].read_text()
    known = {name: int(at) for name, at in re.findall(r"__NR(?:3264)?_(\w+)\s+(\d+)", text)}
    named = {**NO_PERMISSION, **NOT_THERE, **{name: rule.numbers for name, rule in BOTH.items()}}
    for name, numbers in named.items():
        assert known.get(name, numbers[which]) == numbers[which], name
        assert (numbers[which] is None) <= (name not in known), name
