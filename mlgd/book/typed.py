"""Whether someone typed what a check compares: its source is looked at, since a value does not say where it is from."""

import ast
import dis
import inspect
import linecache
from collections import Counter
from collections.abc import Callable, Iterable
from functools import cache
from types import CodeType, FrameType

WRAPPERS = set(
    "Rational Integer Float S sympify nsimplify Fraction Decimal mpf array asarray sqrt isclose".split()
)
WRAPPERS |= set(
    "allclose float int bool complex abs round min max sum tuple list dict set all any len sorted".split()
)
MODULES = set("sp sympy np numpy math mp mpmath".split())


class Source:
    """The source of the call that a frame is executing: which of its arguments are typed, and which are the same."""

    def __init__(self, frame: FrameType, function: Callable):
        source = "".join(linecache.getlines(frame.f_code.co_filename, frame.f_globals))
        # what a kernel ran before; In holds the running cell too, without the newline at its end
        cells = [cell for cell in frame.f_globals.get("In", ()) if cell.strip() != source.strip()]
        nodes = [node for text in (source, *cells) for node in _nodes(text)]
        self.assigned = dict(_assigned_once(nodes))
        self.arguments: dict[str, ast.expr] = {}
        where = inspect.getframeinfo(frame, context=0).positions
        for call in (
            node
            for node in _nodes(source)
            if isinstance(node, ast.Call) and _name(node) == function.__name__
        ):
            here = (call.lineno, call.end_lineno, call.col_offset) == (
                where.lineno,
                where.end_lineno,
                where.col_offset,
            )
            starred = any(isinstance(a, ast.Starred) for a in call.args) or any(
                k.arg is None for k in call.keywords
            )
            if here and not starred:
                keywords = {k.arg: k.value for k in call.keywords}
                self.arguments = (
                    inspect.signature(function).bind_partial(*call.args, **keywords).arguments
                )

    def typed(self, *names: str) -> bool:
        """Whether each of these arguments is made of constants alone, wrapped or named in the same cell or not."""
        return all(name in self.arguments and self._typed(self.arguments[name]) for name in names)

    def same(self, one: str, other: str) -> bool:
        """Whether two arguments are the same words."""
        if one not in self.arguments or other not in self.arguments:
            return False
        return ast.dump(self.arguments[one]) == ast.dump(self.arguments[other])

    def _typed(self, node: ast.AST, known: frozenset[str] = frozenset()) -> bool:
        match node:
            case ast.Name(id=name):
                return (
                    name in self.assigned
                    and name not in known
                    and self._typed(self.assigned[name], known | {name})
                )
            case ast.Attribute(value=ast.Name(id=name)):
                return name in MODULES
            case ast.Call():
                parts = [*node.args, *(k.value for k in node.keywords)]
                return _name(node) in WRAPPERS and all(self._typed(part, known) for part in parts)
            case ast.ListComp() | ast.GeneratorExp() | ast.JoinedStr():
                return False
            case ast.Lambda(body=body):
                return self._typed(body, known)
        return all(
            self._typed(child, known)
            for child in ast.iter_child_nodes(node)
            if isinstance(child, ast.expr)
        )

    def knows_only_constants(self, test: Callable) -> bool:
        """Whether a function uses nothing but its arguments and constants."""
        code = getattr(test, "__code__", None)
        if code is None:
            return False
        names = {n for c in _codes(code) for n in (*c.co_names, *c.co_freevars)} - _own_variables(
            code
        )
        strangers = names - WRAPPERS - MODULES
        return all(n in self.assigned and self._typed(self.assigned[n]) for n in strangers)


def looks_at_its_argument(function: Callable) -> bool:
    """Whether the code of a function reads its first argument (what has no code is trusted)."""
    code = getattr(function, "__code__", None)
    if code is None or not code.co_varnames:
        return code is None
    first = code.co_varnames[0] if not inspect.ismethod(function) else code.co_varnames[1]
    loads = [i.argval for i in dis.get_instructions(code) if "LOAD" in i.opname]
    return any(first == load or (isinstance(load, tuple) and first in load) for load in loads)


def _codes(code: CodeType) -> list[CodeType]:
    return [code, *(c for k in code.co_consts if isinstance(k, CodeType) for c in _codes(k))]


def _own_variables(code: CodeType) -> set[str]:
    return {v for c in _codes(code) for v in (*c.co_varnames, *c.co_cellvars)}


@cache
def _nodes(source: str) -> list[ast.AST]:
    try:
        return list(ast.walk(ast.parse(source)))
    except SyntaxError:  # a magic of the notebook
        return []


def _assigned_once(nodes: Iterable[ast.AST]) -> list[tuple[str, ast.expr]]:
    stored = Counter(
        n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
    )
    plain = [
        n
        for n in nodes
        if isinstance(n, ast.Assign) and len(n.targets) == 1 and isinstance(n.targets[0], ast.Name)
    ]
    return [(n.targets[0].id, n.value) for n in plain if stored[n.targets[0].id] == 1]


def _name(call: ast.Call) -> str:
    return getattr(call.func, "id", getattr(call.func, "attr", ""))
