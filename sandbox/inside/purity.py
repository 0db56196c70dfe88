"""Decide whether a program is pure, that is, keeps no state between calls.

One process may run several calls of a pure program. Only its functions, classes, imported modules
and constants outlive a call; it sets no attribute, rebinds no name of the module, has no decorator
or default argument with state, and uses and imports only names listed here. Any other program,
even if harmless, counts as not pure, and each call gets a process.
"""

import ast
import re
from collections.abc import Collection, Iterator, Mapping, Sequence

BUILTINS = """
abs all any bin bool bytearray bytes callable chr classmethod complex dict divmod enumerate filter
float format frozenset hex int isinstance issubclass iter len list map max min next object oct ord
pow range repr reversed round set slice sorted staticmethod str sum super tuple type zip
ArithmeticError AssertionError AttributeError Exception IndexError KeyError LookupError
NotImplementedError OverflowError RecursionError RuntimeError StopIteration TypeError ValueError
ZeroDivisionError
"""
OTHERS = "date prefix time"
"""Names that `HEADER` of runners.py binds (classes, a string) and programs use for variables."""

MODULES = {
    "bisect": "bisect bisect_left bisect_right insort insort_left insort_right",
    "collections": "ChainMap Counter OrderedDict defaultdict deque namedtuple",
    "functools": "cache cmp_to_key lru_cache partial reduce",
    "heapq": "heapify heappop heappush heappushpop heapreplace merge nlargest nsmallest",
    "itertools": "accumulate chain combinations combinations_with_replacement compress count cycle "
    "dropwhile filterfalse groupby islice pairwise permutations product repeat starmap takewhile "
    "tee zip_longest",
    "math": "acos asin atan atan2 ceil comb copysign cos degrees dist e exp fabs factorial floor "
    "fmod frexp fsum gcd hypot inf isclose isfinite isinf isnan isqrt lcm ldexp log log10 log1p "
    "log2 modf nan perm pi pow prod radians remainder sin sqrt tan tau trunc",
    "operator": "add and_ eq floordiv ge gt index itemgetter le lt mod mul ne neg or_ pos sub "
    "truediv xor",
    "re": "A I L M S U X compile escape findall finditer fullmatch match search split sub",
    "string": "ascii_letters ascii_lowercase ascii_uppercase digits hexdigits punctuation",
    "typing": "Any Callable Counter DefaultDict Deque Dict FrozenSet Generator Generic Iterable "
    "Iterator List Mapping Optional OrderedDict Sequence Set Tuple TypeVar Union",
}
"""Module -> its names that a pure program may use: none gives access to a module or to state."""

FAMILIAR = frozenset(" ".join((BUILTINS, OTHERS, *MODULES, *MODULES.values())).split())
INNARDS = re.compile(r"__|(f|tb|gi|cr|ag|co)_")
"""Matches the start of names that give access to internals, such as frames and namespaces."""

NODES = """
Module FunctionDef ClassDef arguments arg Return Delete Assign AugAssign AnnAssign For While If
Raise Try ExceptHandler Assert Import ImportFrom alias Nonlocal Expr Pass Break Continue BoolOp
BinOp UnaryOp Lambda IfExp Dict Set ListComp SetComp DictComp GeneratorExp comprehension Yield
YieldFrom Compare Call keyword FormattedValue JoinedStr Constant Attribute Subscript Starred Name
List Tuple Slice
"""
"""The syntax nodes of pure programs, besides operators: no `global`, `with`, `match` or `:=`."""
TRUSTED = ("staticmethod", "classmethod", "float")
"""Builtins that a pure program may call or decorate with outside functions, but not rebind."""
SIGNS = (ast.operator, ast.unaryop, ast.cmpop, ast.boolop, ast.expr_context)
KINDS = (*(getattr(ast, name) for name in NODES.split()), *SIGNS)
LONGEST = 50_000
"""Maximum length of a program, in characters; a longer one counts as not pure."""


def is_pure(source: str, ambient: Collection[str]) -> bool:
    """Return whether a program keeps no state between calls; `ambient`: names bound beforehand."""
    if len(source) > LONGEST:
        return False
    try:
        tree = ast.parse(source)
        return _keeps_nothing(tree.body) and not any(_problems(tree, ambient))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False


def _keeps_nothing(body: Sequence[ast.stmt]) -> bool:
    """Return whether a module's or class's body has only functions, classes, imports, constants."""
    return all(_is_fixed(one) for one in body)


def _is_fixed(one: ast.stmt) -> bool:
    """Return whether a statement outside functions creates no state that calls could change."""
    if isinstance(one, ast.FunctionDef):
        defaults = (*one.args.defaults, *one.args.kw_defaults)
        plain = all(_name(each) in TRUSTED[:2] for each in one.decorator_list)
        return plain and all(each is None or _is_constant(each) for each in defaults)
    if isinstance(one, ast.ClassDef):
        plain = all(map(_name, one.bases)) and not one.decorator_list and not one.keywords
        return plain and _keeps_nothing(one.body)
    if isinstance(one, ast.Assign):
        return all(map(_name, one.targets)) and _is_constant(one.value)
    if isinstance(one, ast.Expr):  # a docstring
        return isinstance(one.value, ast.Constant)
    return isinstance(one, ast.Import | ast.ImportFrom | ast.Pass)


def _is_constant(node: ast.expr) -> bool:
    """Return whether an expression is an immutable constant, such as `(1, -2)`."""
    if isinstance(node, ast.Call):  # float("inf")
        plain = _name(node.func) == TRUSTED[2] and not node.keywords
        return plain and all(isinstance(one, ast.Constant) for one in node.args)
    parts = (one for one in ast.iter_child_nodes(node) if isinstance(one, ast.expr))
    kinds = (ast.Constant, ast.BinOp, ast.UnaryOp, ast.Tuple)
    return isinstance(node, kinds) and all(_is_constant(one) for one in parts)


def _name(node: ast.expr) -> str:
    return node.id if isinstance(node, ast.Name) else ""


def _problems(tree: ast.Module, ambient: Collection[str]) -> Iterator[ast.AST]:
    """Yield the syntax nodes of a program that might keep state or give access to state."""
    nodes = list(ast.walk(tree))
    yield from (node for node in nodes if not isinstance(node, KINDS))
    yield from (node for node in nodes if not set(TRUSTED).isdisjoint(_bound(node)))
    modules = {name: name for name in MODULES}
    for node in nodes:
        if isinstance(node, ast.Import):
            modules |= {one.asname or one.name: one.name for one in node.names}
            yield from (one for one in node.names if one.name not in MODULES)
        elif isinstance(node, ast.ImportFrom):
            module, names = node.module or "", [one.name for one in node.names if one.name != "*"]
            yield from [node] if node.level or _missing(module, *names) else []
    yield from _odd_names(nodes, modules, ambient)


def _odd_names(
    nodes: Sequence[ast.AST], modules: Mapping[str, str], ambient: Collection[str]
) -> Iterator[ast.AST]:
    """Yield nodes of attributes that are set, internal or unlisted, and of names not allowed.

    A module's name may stand only before a dot: a copy would give access to unlisted attributes.
    """
    owners = set[int]()
    for node in nodes:
        if isinstance(node, ast.Attribute):
            owner = modules.get(_name(node.value))
            owners.add(id(node.value))
            inside = INNARDS.match(node.attr) or not isinstance(node.ctx, ast.Load)
            if inside or (owner is not None and _missing(owner, node.attr)):
                yield node
    for node in nodes:
        if isinstance(node, ast.Name):
            loose = node.id in modules and id(node) not in owners
            strange = node.id in ambient and node.id not in FAMILIAR
            if loose or strange or INNARDS.match(node.id):
                yield node


def _missing(module: str, *names: str) -> list[str]:
    """Return the names that `MODULES` does not list for a module, or the unlisted module's name."""
    if module not in MODULES:
        return [module]
    return [name for name in names if name not in MODULES[module].split()]


def _bound(node: ast.AST) -> list[str]:
    """Return the names that a syntax node (import, definition, assignment) binds; no parameters."""
    if isinstance(node, ast.Import | ast.ImportFrom):
        return [one.asname or one.name for one in node.names]
    if isinstance(node, ast.Nonlocal):
        return [TRUSTED[0] for name in node.names if INNARDS.match(name)]  # counts as a problem
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return [node.name]
    stored = isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)
    return [node.id] if stored and isinstance(node, ast.Name) else []
