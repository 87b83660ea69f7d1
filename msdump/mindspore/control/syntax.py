"""Second pass: a function whose `if`, `while`, `for` and conditional expressions are calls of `control.hooks`.

Each branch and body becomes a function in the function, which writes the variables around it. All of it keeps the
file, lines and names of the user's source, so that traces, breakpoints and the dump show these.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence

from msdump.mindspore.control.exits import PREFIX, ExitPass, has_exit, is_rigid, walk_scope

# Name under which the rewritten function sees the module `hooks`.
HOOKS = "__msdump__"
_HOOKS_MODULE = "msdump.mindspore.control.hooks"
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def rewrite(node: ast.FunctionDef) -> None:
    """Rewrite the definition of a function in place."""
    node.decorator_list = []
    _rewrite_body(node)
    module = ast.parse(f"{HOOKS} = __import__({_HOOKS_MODULE!r}, fromlist=('hooks',))").body
    first = 1 if ast.get_docstring(node, clean=False) is not None else 0
    node.body[first:first] = [_placed(statement, node) for statement in module]
    ast.fix_missing_locations(node)


def is_generator(node: ast.AST) -> bool:
    """Does the function wait for others in its body?"""
    body = getattr(node, "body", [])
    kinds = (ast.Yield, ast.YieldFrom, ast.Await)
    return any(isinstance(inner, kinds) for statement in body for inner in walk_scope(statement))


def _rewrite_body(node: ast.FunctionDef) -> None:
    exits = ExitPass()
    body = exits.settle(node.body)
    converter = _Converter(exits, node)
    node.body = [statement for each in body for statement in converter.converted(each)]
    if converter.shared:
        # Never runs: it tells Python that these are variables of this function.
        names = [ast.Name(name, ast.Store()) for name in sorted(converter.shared)]
        bound = _placed(ast.If(ast.Constant(False), [ast.Assign([*names], ast.Constant(None))], []), node)
        first = 1 if ast.get_docstring(node, clean=False) is not None else 0
        node.body.insert(first, bound)


class _Converter(ast.NodeTransformer):
    """Turns statements into calls of hooks.   shared: variables that functions in the function write."""

    def __init__(self, exits: ExitPass, function: ast.FunctionDef) -> None:
        self.shared: set[str] = set()
        self._exits = exits
        self._count = 0
        self._depth = 0  # functions around the statement that is converted, in the function itself
        arguments = [*function.args.posonlyargs, *function.args.args]
        self._first_argument = arguments[0].arg if arguments else ""
        inner = [each for statement in function.body for each in walk_scope(statement)]
        self._globals = {name for each in inner if isinstance(each, ast.Global) for name in each.names}
        self._locals = {each.arg for each in ast.walk(function.args) if isinstance(each, ast.arg)}
        self._locals |= {name for statement in function.body for name in _bound(statement)}
        self._nonlocals = {name for each in inner if isinstance(each, ast.Nonlocal) for name in each.names}

    def converted(self, statement: ast.stmt) -> list[ast.stmt]:
        result = self.visit(statement)
        return result if isinstance(result, list) else [result]

    # -- statements ---------------------------------------------------------------------------------

    def visit_If(self, node: ast.If) -> ast.stmt | list[ast.stmt]:
        leaves = has_exit(node)
        names = self._names([*node.body, *node.orelse])
        if names is None or is_rigid(node) or (leaves and node not in self._exits.settled):
            return self._plain(node)
        then, orelse = self._new("then"), self._new("orelse")
        self.shared |= set(names) - self._nonlocals
        functions = [self._function(then, node.body, names, node), self._function(orelse, node.orelse, names, node)]
        operands = [self.visit(node.test), _load(then), _load(orelse)]
        if leaves:
            outer = _texts(sorted(self._nonlocals.intersection(names)))
            return [*functions, _placed(ast.Return(_hook("choose", *operands, _texts(names), outer)), node)]
        return [*functions, _placed(ast.Expr(_hook("if_", *operands, _texts(names))), node)]

    def visit_While(self, node: ast.While) -> ast.stmt | list[ast.stmt]:
        names = self._names(node.body)
        if names is None or node not in self._exits.stop_of or node.orelse:
            return self._plain(node)
        test, body = self._new("test"), self._new("body")
        self.shared |= set(names) - self._nonlocals
        returned = _placed(ast.Return(self.visit(node.test)), node)
        functions = [self._function(test, [returned], (), node, True), self._function(body, node.body, names, node)]
        stop = ast.Constant(self._exits.stop_of[node])
        call = _hook("while_", _load(test), _load(body), _texts(names), stop)
        return [*functions, _placed(ast.Expr(call), node)]

    def visit_For(self, node: ast.For) -> ast.stmt | list[ast.stmt]:
        names = self._names([*node.body, ast.Assign([node.target], ast.Constant(None))])
        if names is None or node not in self._exits.stop_of or node.orelse:
            return self._plain(node)
        body, item = self._new("body"), self._new("item")
        self.shared |= set(names) - self._nonlocals
        first = _placed(ast.Assign([node.target], _load(item)), node)
        function = self._function(body, [first, *node.body], names, node, False, item)
        items = node.iter
        if isinstance(items, ast.Call) and isinstance(items.func, ast.Name) and items.func.id == "range":
            items = _placed_expr(_hook("range_", items.func, *items.args), items)
        stop = ast.Constant(self._exits.stop_of[node])
        call = _hook("for_", self.visit(items), _load(body), _texts(names), stop)
        return [function, _placed(ast.Expr(call), node)]

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.stmt:
        """A variable that another function writes must not be declared."""
        if not isinstance(node.target, ast.Name):
            return self._plain(node)
        value = ast.Constant(None) if node.value is None else self.visit(node.value)
        plain: ast.stmt = ast.Expr(value) if node.value is None else ast.Assign([node.target], value)
        return _placed(plain, node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.stmt:
        if not is_generator(node):
            _rewrite_body(node)
        return node

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.stmt:
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.stmt:
        return node

    def visit_Assign(self, node: ast.Assign) -> ast.stmt | list[ast.stmt]:
        return self._with_own(node)

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.stmt | list[ast.stmt]:
        return self._with_own(node)

    # -- expressions --------------------------------------------------------------------------------

    def visit_IfExp(self, node: ast.IfExp) -> ast.expr:
        if _binds(node):
            return node
        test, body, orelse = (self.visit(each) for each in (node.test, node.body, node.orelse))
        return _placed_expr(_hook("if_expression", test, _delayed(body), _delayed(orelse)), node)

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.expr:
        if _binds(node):
            return node
        name = "and_" if isinstance(node.op, ast.And) else "or_"
        return _placed_expr(_hook(name, *(_delayed(self.visit(each)) for each in node.values)), node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.expr:
        operand = self.visit(node.operand)
        if isinstance(node.op, ast.Not):
            return _placed_expr(_hook("not_", operand), node)
        node.operand = operand
        return node

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        if len(node.ops) == 1 or _binds(node):
            return self.generic_visit(node)
        operators = ast.Constant(" ".join(type(each).__name__ for each in node.ops))
        operands = [_delayed(self.visit(each)) for each in (node.left, *node.comparators)]
        return _placed_expr(_hook("compare", operators, *operands), node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """`super()` finds its class and object only in the method itself; `bool(x)` may be of a tensor."""
        if isinstance(node.func, ast.Name) and node.func.id == "super" and not node.args and self._first_argument:
            node.args = [_load("__class__"), _load(self._first_argument)]
            ast.fix_missing_locations(node)
        result = self.generic_visit(node)
        if isinstance(node.func, ast.Name) and node.func.id == "bool" and len(node.args) == 1 and not node.keywords:
            return _placed_expr(_hook("bool_", node.func, *node.args), node)
        return result

    # -- parts --------------------------------------------------------------------------------------

    def _plain(self, node: ast.stmt) -> ast.stmt:
        result: ast.stmt = self.generic_visit(node)  # type: ignore[assignment]
        return result

    def _with_own(self, node: ast.Assign | ast.AugAssign) -> ast.stmt | list[ast.stmt]:
        """Variables whose elements a branch or a body writes get new values, which can leave it."""
        names = sorted(set(_filled(node)) & self._locals - self._globals - self._nonlocals) if self._depth else []
        own = [ast.Assign([ast.Name(name, ast.Store())], _hook("own", _load(name))) for name in names]
        return [*(_placed(each, node) for each in own), self._plain(node)] if own else self._plain(node)

    def _names(self, statements: Iterable[ast.stmt]) -> list[str] | None:
        """Variables that the statements write, or elements of which; None where some are global."""
        statements = list(statements)
        filled = self._locals.intersection(name for statement in statements for name in _filled(statement))
        names = sorted(filled.union(name for statement in statements for name in _bound(statement)))
        return None if self._globals.intersection(names) else names

    def _new(self, kind: str) -> str:
        self._count += 1
        return f"{PREFIX}{kind}_{self._count}"

    def _function(
        self, name: str, body: Sequence[ast.stmt], names: Sequence[str], place: ast.stmt, is_visited: bool = False,
        argument: str = "",
    ) -> ast.stmt:  # fmt: skip
        self._depth += 1
        inner = list(body) if is_visited else [statement for each in body for statement in self.converted(each)]
        self._depth -= 1
        written = [ast.Nonlocal(list(names))] if names else []
        function = new_function(name, [*written, *(inner or [ast.Pass()])])
        if argument:
            function.args.args.append(ast.arg(argument))
        return _placed(function, place)


def new_function(name: str, body: Sequence[ast.stmt]) -> ast.FunctionDef:
    """`def name(): body`, with the fields that this version of Python has."""
    function = ast.parse("def function(): pass").body[0]
    assert isinstance(function, ast.FunctionDef)
    function.name, function.body = name, list(body)
    return function


def _bound(node: ast.AST) -> Iterator[str]:
    """Variables of the function that a statement of it writes or deletes."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        yield node.name
        return
    if isinstance(node, ast.Lambda):
        return
    if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
        yield node.id
    elif isinstance(node, ast.alias):
        yield (node.asname or node.name).split(".")[0]
    elif isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar) and node.name:
        yield node.name
    elif isinstance(node, ast.MatchMapping) and node.rest:
        yield node.rest
    for child in ast.iter_child_nodes(node):
        if isinstance(node, _COMPREHENSIONS) or isinstance(child, _COMPREHENSIONS):
            walruses = (each.target for each in ast.walk(child) if isinstance(each, ast.NamedExpr))
            yield from (target.id for target in walruses if isinstance(target, ast.Name))
        else:
            yield from _bound(child)


def _filled(node: ast.AST) -> Iterator[str]:
    """Variables of the function to whose elements a statement of it assigns."""
    for each in walk_scope(node):
        targets: list[ast.AST] = []
        if isinstance(each, ast.Assign):
            targets += [inner for target in each.targets for inner in ast.walk(target)]
        elif isinstance(each, ast.AugAssign):
            targets.append(each.target)
        places = (target for target in targets if isinstance(target, ast.Subscript))
        for place in places:
            if isinstance(place.ctx, ast.Store) and isinstance(place.value, ast.Name):
                yield place.value.id


def _binds(node: ast.AST) -> bool:
    """Does an expression write variables, or wait?"""
    kinds = (ast.NamedExpr, ast.Yield, ast.YieldFrom, ast.Await)
    return any(isinstance(each, kinds) for each in ast.walk(node))


def _delayed(value: ast.expr) -> ast.expr:
    return ast.Lambda(ast.arguments([], [], None, [], [], None, []), value)


def _hook(name: str, *operands: ast.expr) -> ast.expr:
    return ast.Call(ast.Attribute(_load(HOOKS), name, ast.Load()), list(operands), [])


def _load(name: str) -> ast.expr:
    return ast.Name(name, ast.Load())


def _texts(names: Iterable[str]) -> ast.expr:
    return ast.Tuple([ast.Constant(name) for name in names], ast.Load())


def _placed(node: ast.stmt, place: ast.AST) -> ast.stmt:
    """At the line of another, with all in it that has no line yet."""
    _copy_line(node, place)
    return ast.fix_missing_locations(node)


def _placed_expr(node: ast.expr, place: ast.expr) -> ast.expr:
    _copy_line(node, place)
    return ast.fix_missing_locations(node)


def _copy_line(node: ast.AST, place: ast.AST) -> None:
    line, column = getattr(place, "lineno", 1), getattr(place, "col_offset", 0)
    for name, value in (("lineno", line), ("end_lineno", line), ("col_offset", column), ("end_col_offset", column)):
        setattr(node, name, value)
