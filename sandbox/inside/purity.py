"""Which programs keep nothing from one call to the next, so that one process may take many calls.

A pure program has nothing to keep it in. What outlives a call are its functions, its classes, the
modules it imports and constants; no attribute is ever set, no name of the module rebound, no
decorator or default holds a state, and what it names or imports is listed here. Anything else, dull
or odd, is not pure, and gets a process for each call.
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
"""Classes and a text that programs find bound, and rather use as names of their own."""

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
"""What may be used of each module: no name leads to another module, or to a state of its own."""

FAMILIAR = frozenset(" ".join((BUILTINS, OTHERS, *MODULES, *MODULES.values())).split())
INNARDS = re.compile(r"__|(f|tb|gi|cr|ag|co)_")
"""How names begin that lead to frames, dictionaries of names and the like."""

NODES = """
Module FunctionDef ClassDef arguments arg Return Delete Assign AugAssign AnnAssign For While If
Raise Try ExceptHandler Assert Import ImportFrom alias Nonlocal Expr Pass Break Continue BoolOp
BinOp UnaryOp Lambda IfExp Dict Set ListComp SetComp DictComp GeneratorExp comprehension Yield
YieldFrom Compare Call keyword FormattedValue JoinedStr Constant Attribute Subscript Starred Name
List Tuple Slice
"""
"""What a pure program is made of, operators apart: no `global`, `with`, `match` or `:=`."""
TRUSTED = ("staticmethod", "classmethod", "float")
"""What may be called while the module is made: a program that binds such a name is not pure."""
SIGNS = (ast.operator, ast.unaryop, ast.cmpop, ast.boolop, ast.expr_context)
KINDS = (*(getattr(ast, name) for name in NODES.split()), *SIGNS)
LONGEST = 50_000
"""Characters of a source that is looked at."""


def is_pure(source: str, ambient: Collection[str]) -> bool:
    """Return whether a program can keep nothing; `ambient` are the names that it finds bound."""
    if len(source) > LONGEST:
        return False
    try:
        tree = ast.parse(source)
        return _keeps_nothing(tree.body) and not any(_problems(tree, ambient))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False


def _keeps_nothing(body: Sequence[ast.stmt]) -> bool:
    """Return whether what a module or a class holds for good are functions and constants."""
    return all(_is_fixed(one) for one in body)


def _is_fixed(one: ast.stmt) -> bool:
    """Return whether a statement outside functions makes nothing that can change."""
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
    """Return whether an expression stands for a value that nothing can change."""
    if isinstance(node, ast.Call):  # float("inf")
        plain = _name(node.func) == TRUSTED[2] and not node.keywords
        return plain and all(isinstance(one, ast.Constant) for one in node.args)
    parts = (one for one in ast.iter_child_nodes(node) if isinstance(one, ast.expr))
    kinds = (ast.Constant, ast.BinOp, ast.UnaryOp, ast.Tuple)
    return isinstance(node, kinds) and all(_is_constant(one) for one in parts)


def _name(node: ast.expr) -> str:
    return node.id if isinstance(node, ast.Name) else ""


def _problems(tree: ast.Module, ambient: Collection[str]) -> Iterator[ast.AST]:
    """Yield what might keep a state, or reach one."""
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
    """Yield attributes that are set or lead inside, and names of what is not listed here.

    A module is named before a dot only, or it could be had without its list.
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
    """Return what is not to be had of a module; its own name where there is none."""
    if module not in MODULES:
        return [module]
    return [name for name in names if name not in MODULES[module].split()]


def _bound(node: ast.AST) -> list[str]:
    """Return the names that a node binds, names of variables apart that are bound in functions."""
    if isinstance(node, ast.Import | ast.ImportFrom):
        return [one.asname or one.name for one in node.names]
    if isinstance(node, ast.Nonlocal):
        return [TRUSTED[0] for name in node.names if INNARDS.match(name)]
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return [node.name]
    stored = isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)
    return [node.id] if stored and isinstance(node, ast.Name) else []
