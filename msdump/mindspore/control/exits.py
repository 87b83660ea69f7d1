"""First pass over the statements of a function: every `return`, `break` and `continue` comes last in what runs.

What follows an `if` with such an exit moves into the branch that goes on; where several would, a flag says whether one
has left. Inside a loop exits become flags: `break` says that the loop is over, `return` says so too and keeps its value
until the loop has ended.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator, Sequence

# Names of what this package adds to a function.
PREFIX = "_msdump_"
RESULT = PREFIX + "result"
RETURNED = PREFIX + "returned"

Loop = ast.While | ast.For
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
_EXITS = (ast.Return, ast.Break, ast.Continue)
_BLOCKS = tuple(
    getattr(ast, name) for name in ("With", "AsyncWith", "Try", "TryStar", "Match", "AsyncFor") if hasattr(ast, name)
)


class Flags:
    """Where the statements of one function or loop leave it.

    stop    the name that says that the loop is over, or the function
    skips   names that say that what follows an `if` is left out
    """

    def __init__(self, stop: str) -> None:
        self.stop = stop
        self.skips: list[str] = []
        self.has_stop = False
        self.has_return = False


class ExitPass:
    """`settle` for the body of a function."""

    def __init__(self) -> None:
        self._loops = 0
        self._skips = 0
        # `if` statements whose exits come last, as all else in them.
        self.settled: set[ast.stmt] = set()
        # Loop statements -> the flag that ends them early; "" where nothing does.
        self.stop_of: dict[ast.stmt, str] = {}

    def settle(self, statements: Sequence[ast.stmt], loop: Flags | None = None) -> list[ast.stmt]:
        """The same program with exits last in what runs. `loop`: of the innermost loop around the statements."""
        settled: list[ast.stmt] = []
        for index, statement in enumerate(statements):
            rest = statements[index + 1 :]
            if isinstance(statement, _EXITS):
                settled += self._exit(statement, loop)
                return settled
            if isinstance(statement, ast.If):
                if is_rigid(statement) or not has_exit(statement):
                    settled.append(self._if(statement, statement.body, statement.orelse, loop))
                    continue
                if rest and _ends(statement.body) + _ends(statement.orelse) > 1:
                    return settled + self._flagged(statement, rest, loop)
                copies = [copy.deepcopy(each) for each in rest]
                settled.append(self._if(statement, [*statement.body, *rest], [*statement.orelse, *copies], loop))
                return settled
            if isinstance(statement, Loop) and not is_rigid(statement):
                before, after = self._loop(statement, loop)
                settled += before
                if after:
                    return settled + self.settle([*after, *rest], loop)
            else:
                self._settle_inside(statement)
                settled.append(statement)
        return settled

    def _settle_inside(self, statement: ast.stmt) -> None:
        """Statements under `with`, `try` and the like, where they do not leave it."""
        for block in (statement, *getattr(statement, "handlers", ()), *getattr(statement, "cases", ())):
            for name in ("body", "orelse", "finalbody"):
                inner: list[ast.stmt] = getattr(block, name, [])
                if isinstance(statement, _BLOCKS) and not any(has_exit(each) for each in inner):
                    inner[:] = self.settle(inner)

    def _if(self, node: ast.If, body: Sequence[ast.stmt], orelse: Sequence[ast.stmt], loop: Flags | None) -> ast.If:
        if is_rigid(node):
            return node
        self.settled.add(node)
        node.body = self.settle(body, loop) or [ast.copy_location(ast.Pass(), node)]
        node.orelse = self.settle(orelse, loop)
        return node

    def _flagged(self, node: ast.If, rest: Sequence[ast.stmt], loop: Flags | None) -> list[ast.stmt]:
        """An `if` that may leave what is around it in some of several ways, then the rest where it did not."""
        if loop is None:
            flags = Flags(RETURNED)
            before = _assign(RETURNED, ast.Constant(False), node)
            inner = self._if(node, node.body, node.orelse, flags)
            left: ast.stmt = ast.If(_name(RETURNED), [ast.Return(_name(RESULT))], [])
        else:
            self._skips += 1
            skip = f"{PREFIX}skip_{self._skips}"
            loop.skips.append(skip)
            before = _assign(skip, ast.Constant(False), node)
            inner = self._if(node, node.body, node.orelse, loop)
            loop.skips.pop()
            left = ast.If(_name(skip), [ast.Continue()], [])
        return [before, inner, *self.settle([_located(left, node), *rest], loop)]

    def _exit(self, node: ast.stmt, loop: Flags | None) -> list[ast.stmt]:
        if loop is None:
            return [node]
        statements = [_assign(skip, ast.Constant(True), node) for skip in loop.skips]
        if isinstance(node, ast.Continue):
            return statements
        loop.has_stop = True
        if isinstance(node, ast.Return):
            loop.has_return = True
            value = node.value or ast.Constant(None)
            statements += [_assign(RESULT, value, node), _assign(RETURNED, ast.Constant(True), node)]
        return [*statements, _assign(loop.stop, ast.Constant(True), node)]

    def _loop(self, node: Loop, outer: Flags | None) -> tuple[list[ast.stmt], list[ast.stmt]]:
        """The loop with its flags set before it, and what is to be done after it."""
        self._loops += 1
        flags = Flags(f"{PREFIX}stop_{self._loops}")
        node.body = self.settle(node.body, flags) or [ast.copy_location(ast.Pass(), node)]
        orelse, node.orelse = node.orelse, []
        self.stop_of[node] = flags.stop if flags.has_stop else ""
        before: list[ast.stmt] = [_assign(flags.stop, ast.Constant(False), node)] if flags.has_stop else []
        after: list[ast.stmt] = []
        if flags.has_return:
            before.append(_assign(RETURNED, ast.Constant(False), node))
            returned = ast.Return(_name(RESULT)) if outer is None else ast.Break()
            if outer is not None:
                outer.has_return = True
            after.append(_located(ast.If(_name(RETURNED), [returned], []), node))
        if orelse and flags.has_stop:
            after.append(_located(ast.If(ast.UnaryOp(ast.Not(), _name(flags.stop)), orelse, []), node))
        else:
            after += orelse
        return [*before, node], after


def _ends(statements: Sequence[ast.stmt]) -> int:
    """In how many places the statements go on to what follows; 2 for more."""
    ends = 1
    for statement in statements:
        if isinstance(statement, _EXITS):
            return 0
        if isinstance(statement, ast.If) and has_exit(statement):
            ends = min(2, ends * (_ends(statement.body) + _ends(statement.orelse)))
    return ends


def has_exit(node: ast.stmt, is_in_loop: bool = False) -> bool:
    """Does the statement leave what is around it? Exits of loops in it that only leave these do not count."""
    if isinstance(node, ast.Return):
        return True
    if isinstance(node, ast.Break | ast.Continue):
        return not is_in_loop
    is_in_loop = is_in_loop or isinstance(node, Loop)
    return any(has_exit(child, is_in_loop) for child in _statements(node))


def is_rigid(node: ast.stmt) -> bool:
    """Must the statement stay as it is? It has exits out of `with` or `try`, writes globals, or waits for others."""
    return _has_hidden_exit(node, False) or any(
        isinstance(inner, ast.Global | ast.Yield | ast.YieldFrom | ast.Await) for inner in walk_scope(node)
    )


def _has_hidden_exit(node: ast.stmt, is_hidden: bool) -> bool:
    if is_hidden and isinstance(node, _EXITS):
        return True
    is_hidden = is_hidden or isinstance(node, _BLOCKS)
    return any(_has_hidden_exit(child, is_hidden) for child in _statements(node))


def _statements(node: ast.AST) -> Iterator[ast.stmt]:
    """Statements directly in one, not those of functions and classes in it."""
    if isinstance(node, _SCOPES):
        return
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.stmt):
            yield child
        elif isinstance(child, ast.ExceptHandler | ast.match_case):
            yield from child.body


def walk_scope(node: ast.AST) -> Iterator[ast.AST]:
    """A node and all below it that belong to the same function."""
    yield node
    for child in ast.iter_child_nodes(node):
        if isinstance(child, _SCOPES):
            yield child
        else:
            yield from walk_scope(child)


def _assign(name: str, value: ast.expr, place: ast.stmt) -> ast.stmt:
    return _located(ast.Assign([ast.Name(name, ast.Store())], value), place)


def _name(name: str) -> ast.expr:
    return ast.Name(name, ast.Load())


def _located(node: ast.stmt, place: ast.stmt) -> ast.stmt:
    ast.copy_location(node, place)
    for child in ast.walk(node):
        if not hasattr(child, "lineno") and isinstance(child, ast.stmt | ast.expr):
            ast.copy_location(child, place)
    return node
