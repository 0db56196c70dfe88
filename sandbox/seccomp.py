"""A seccomp filter, assembled by hand, that refuses system calls of programs under bubblewrap.

Bubblewrap has no filter of its own, so kernel keyrings (which no namespace isolates), nested user
namespaces, sockets to the hypervisor and much rarely used kernel code stay reachable. This filter
refuses what Docker's default refuses, and calls that could disturb a supervisor with the same uid.

The bytes are classic BPF (struct sock_filter, see seccomp(2)), the same for x86_64 and aarch64: the
filter checks the architecture first. Numbers are from the kernel's asm/unistd_64.h (x86) and
asm-generic/unistd.h (aarch64). A system call newer than these lists fails with ENOSYS.
"""

import errno
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

ALLOW = 0x7FFF0000
KILL = 0x80000000
REFUSE = 0x00050000  # plus the errno that the program gets
X86_64 = 0xC000003E
AARCH64 = 0xC00000B7
X32_BIT = 0x40000000  # marks the calls of x86's 32-bit-pointer interface, which arrive as X86_64
NEWEST = 456  # highest call number in these lists (futex_requeue, Linux 6.7), on both architectures

# Name of a system call -> its (x86_64, aarch64) numbers; None if the architecture lacks it.
Numbers = Mapping[str, tuple[int | None, int | None]]

NO_PERMISSION: Numbers = {
    # Keyrings belong to the user, not to a namespace: programs could exchange messages.
    "add_key": (248, 217), "request_key": (249, 218), "keyctl": (250, 219),
    # Namespaces, mounts and roots.
    "unshare": (272, 97), "setns": (308, 268), "mount": (165, 40), "umount2": (166, 39),
    "open_tree": (428, 428), "move_mount": (429, 429), "fsopen": (430, 430), "fsconfig": (431, 431),
    "fsmount": (432, 432), "fspick": (433, 433), "mount_setattr": (442, 442),
    "pivot_root": (155, 41), "chroot": (161, 51),
    # Looking into other processes, or changing how they run.
    "ptrace": (101, 117), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271),
    "process_madvise": (440, 440), "kcmp": (312, 272), "pidfd_getfd": (438, 438),
    "move_pages": (279, 239), "migrate_pages": (256, 238), "ioprio_set": (251, 30),
    # Kernel code with many past vulnerabilities that no graded program needs.
    "bpf": (321, 280), "perf_event_open": (298, 241), "userfaultfd": (323, 282),
    "io_uring_setup": (425, 425), "io_uring_enter": (426, 426), "io_uring_register": (427, 427),
    "fanotify_init": (300, 262), "modify_ldt": (154, None),
    # SysV memory, queues and semaphores are kernel memory that our limits do not count.
    "shmget": (29, 194), "msgget": (68, 186), "semget": (64, 190),
    # File handles that bypass the permissions of directories.
    "name_to_handle_at": (303, 264), "open_by_handle_at": (304, 265),
    # Calls that change the whole machine.
    "kexec_load": (246, 104), "kexec_file_load": (320, 294), "init_module": (175, 105),
    "finit_module": (313, 273), "delete_module": (176, 106), "swapon": (167, 224),
    "swapoff": (168, 225), "reboot": (169, 142), "acct": (163, 89), "quotactl": (179, 60),
    "quotactl_fd": (443, 443), "syslog": (103, 116), "settimeofday": (164, 170),
    "clock_settime": (227, 112), "adjtimex": (159, 171), "clock_adjtime": (305, 266),
    "sethostname": (170, 161), "setdomainname": (171, 162), "vhangup": (153, 58),
    "iopl": (172, None), "ioperm": (173, None),
    # Obsolete calls.
    "uselib": (134, None), "ustat": (136, None), "sysfs": (139, None), "_sysctl": (156, None),
    "create_module": (174, None), "get_kernel_syms": (177, None), "query_module": (178, None),
    "nfsservctl": (180, 42), "lookup_dcookie": (212, 18),
}  # fmt: skip

NOT_THERE: Numbers = {"clone3": (435, 435)}
"""System calls that fail with ENOSYS. clone3 has its flags in memory, which a filter cannot read;
without clone3, libc uses clone."""
NEW_NAMESPACES = 0x7E020000  # CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID and NEWNET


@dataclass(frozen=True, slots=True)
class ArgumentCheck:
    """A condition on the lower 32 bits of one argument of a system call (enough for `RULES`)."""

    argument: int
    test: Literal["one of", "none of", "no bit of"]
    values: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Rule:
    """A system call that is allowed if its arguments pass every check, else fails with `error`."""

    numbers: tuple[int, int]
    checks: tuple[ArgumentCheck, ...]
    error: int = errno.EPERM


ITSELF = (ArgumentCheck(0, "one of", (0,)),)

RULES: Mapping[str, Rule] = {
    "clone": Rule((56, 220), (ArgumentCheck(0, "no bit of", (NEW_NAMESPACES,)),)),
    "personality": Rule((135, 92), (ArgumentCheck(0, "one of", (0, 0xFFFFFFFF)),)),
    # TIOCSTI and TIOCLINUX put characters into a terminal's input.
    "ioctl": Rule((16, 29), (ArgumentCheck(1, "none of", (0x5412, 0x541C)),)),
    # AF_UNIX, AF_INET and AF_INET6 stay in the network namespace; AF_VSOCK reaches the hypervisor.
    "socket": Rule((41, 198), (ArgumentCheck(0, "one of", (1, 2, 10)),), errno.EAFNOSUPPORT),
    # A program may change only its own limits and priority: the judge may have the same uid.
    "prlimit64": Rule((302, 261), ITSELF),
    "sched_setaffinity": Rule((203, 122), ITSELF),
    "sched_setscheduler": Rule((144, 119), ITSELF),
    "sched_setparam": Rule((142, 118), ITSELF),
    "sched_setattr": Rule((314, 274), ITSELF),
    # `which` 0 is a process; other values are groups and users.
    "setpriority": Rule((141, 140), (*ITSELF, ArgumentCheck(1, "one of", (0,)))),
}

ALL = 0xFFFFFFFF  # -1
JUDGE, ZYGOTE = 1, 2
"""Process ids in a bubblewrap box: the supervisor's, and that of its first child, which forks
programs (sandbox/inside/zygote.py)."""
_A_PROGRAM = ArgumentCheck(0, "none of", (JUDGE, ZYGOTE))

SAME_USER: Mapping[str, Rule] = {
    # For boxes in which all processes have one uid: the kernel shields process 1 from signals that
    # it does not handle, but not the zygote, which a program could stop.
    "kill": Rule((62, 129), (ArgumentCheck(0, "none of", (JUDGE, ZYGOTE, ALL)),)),
    "tkill": Rule((200, 130), (_A_PROGRAM,)),
    "tgkill": Rule((234, 131), (_A_PROGRAM,)),
    "rt_sigqueueinfo": Rule((129, 138), (_A_PROGRAM,)),
    "rt_tgsigqueueinfo": Rule((297, 240), (_A_PROGRAM,)),
    "pidfd_send_signal": Rule((424, 424), (ArgumentCheck(0, "one of", ()),)),
    # Signals to another process through a file: F_SETOWN, F_SETOWN_EX, FIOSETOWN, SIOCSPGRP.
    "fcntl": Rule((72, 25), (ArgumentCheck(1, "none of", (8, 15)),)),
    "ioctl": Rule((16, 29), (ArgumentCheck(1, "none of", (0x5412, 0x541C, 0x8901, 0x8902)),)),
}

_NEVER = (ArgumentCheck(0, "one of", ()),)

PROGRAM: Mapping[str, Rule] = {
    # For programs in every box, but not for its judge. An unnamed file is memory that counts for no
    # process; message queues that a program leaves behind cannot be listed under gVisor.
    "memfd_create": Rule((319, 279), _NEVER),
    "memfd_secret": Rule((447, 447), _NEVER),
    "mq_open": Rule((240, 180), _NEVER),
}

_LOAD, _JUMP, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x05, 0x15, 0x35, 0x45, 0x06
_NUMBER_AT, _ARCHITECTURE_AT, _ARGUMENTS_AT = 0, 4, 16
_Code = list[bytes]


def filter_bytes(rules: Mapping[str, Rule] = RULES) -> bytes:
    """Return a seccomp filter as BPF bytes, e.g. for bubblewrap's option `--seccomp`.

    The filter refuses the system calls in `NO_PERMISSION` and `NOT_THERE`, those newer than these
    lists, and those that break one of `rules`. All other calls are allowed.
    """
    x86 = [*_at_least(X32_BIT, KILL), *_calls(rules, 0)]
    both = [*_on_architecture(X86_64, x86), *_on_architecture(AARCH64, _calls(rules, 1))]
    return b"".join([_op(_LOAD, _ARCHITECTURE_AT), *both, _op(_RETURN, KILL)])


def _op(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    """Return one BPF instruction; `if_true` and `if_false` are numbers of instructions to skip."""
    return struct.pack("=HBBI", code, if_true, if_false, value)


def _on_architecture(architecture: int, calls: _Code) -> _Code:
    loaded = [_op(_LOAD, _NUMBER_AT), *calls]
    # A conditional jump spans 255 instructions at most, an unconditional one any number.
    return [_op(_EQUAL, architecture, if_true=1), _op(_JUMP, len(loaded)), *loaded]


def _at_least(number: int, verdict: int) -> _Code:
    return [_op(_AT_LEAST, number, if_false=1), _op(_RETURN, verdict)]


def _calls(rules: Mapping[str, Rule], architecture: Literal[0, 1]) -> _Code:
    code = _at_least(NEWEST + 1, REFUSE | errno.ENOSYS)
    for refused, error in ((NO_PERMISSION, errno.EPERM), (NOT_THERE, errno.ENOSYS)):
        for numbers in refused.values():
            number = numbers[architecture]
            if number is not None:
                code += [_op(_EQUAL, number, if_false=1), _op(_RETURN, REFUSE | error)]
    for rule in rules.values():
        refuse = _op(_RETURN, REFUSE | rule.error)
        checks = [instruction for check in rule.checks for instruction in _check(check, refuse)]
        body = [*checks, _op(_RETURN, ALLOW)]
        code += [_op(_EQUAL, rule.numbers[architecture], if_false=len(body)), *body]
    return [*code, _op(_RETURN, ALLOW)]


def _check(check: ArgumentCheck, refuse: bytes) -> _Code:
    """Return BPF instructions that execute `refuse` if a system call's argument fails the check."""
    code = [_op(_LOAD, _ARGUMENTS_AT + 8 * check.argument)]
    if check.test == "one of":
        count = len(check.values)
        code += [_op(_EQUAL, v, if_true=count - i) for i, v in enumerate(check.values)]
        return [*code, refuse]
    test = _ANY_BIT if check.test == "no bit of" else _EQUAL
    for value in check.values:
        code += [_op(test, value, if_false=1), refuse]
    return code
