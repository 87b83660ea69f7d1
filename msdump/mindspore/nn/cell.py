"""Cell: a module of a network, with its parameters and child cells."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial, wraps
from typing import Any

from msdump.mindspore.common.dtype import DType, bfloat16, dtype_name, float16, float32, float64
from msdump.mindspore.common.hook_handle import HookHandle, check_hook
from msdump.mindspore.common.parameter import DEFAULT_NAME, Parameter, ParameterTuple
from msdump.mindspore.common.tensor import Tensor, attached_functions
from msdump.mindspore.compiler import GraphCache, compiled
from msdump.mindspore.context import GRAPH_MODE, JitConfig, get_context
from msdump.mindspore.dispatch import cast
from msdump.mindspore.hooks import CellHooks, Hook
from msdump.mindspore.located import located, tell
from msdump.mindspore.nn.one_device import OneDevice
from msdump.mindspore.other_paths import left_out
from msdump.mindspore.own_gradient import with_bprop
from msdump.mindspore.precision import Precision, computing_in
from msdump.mindspore.pynative import call_in_graph_mode, run_recorded, run_step, step_session
from msdump.mindspore.reference import advice
from msdump.mindspore.sources import user_line
from msdump.mindspore.structure import check_inputs, has_open_shape, is_same_constant
from msdump.mindspore.tracer import MARK, Tracer, current_tracer

_SHIM = __name__.partition(".nn.")[0]


class Cell(OneDevice):
    """Base of all networks: subclasses create children and parameters in `__init__` and compute in `construct`."""

    _cells: OrderedDict[str, Cell]
    _params: OrderedDict[str, Parameter]
    cls_name: str = ""
    scope_name: str
    phase: str = "train"
    param_prefix: str = ""

    # A cell that only groups its children: calls of them show it in their scope though it is never called itself.
    is_container = False

    def __init__(self, auto_prefix: bool = True, flags: dict[str, Any] | None = None) -> None:
        set_plain = object.__setattr__
        set_plain(self, "_params", OrderedDict())
        set_plain(self, "_cells", OrderedDict())
        set_plain(self, "_auto_prefix", auto_prefix)
        set_plain(self, "_flags", dict(flags or {}))
        set_plain(self, "_cache", GraphCache())
        set_plain(self, "_precision", None)
        set_plain(self, "_jit_level", "")
        set_plain(self, "_declared_inputs", None)
        set_plain(self, "_hooks", CellHooks())
        set_plain(self, "_written", set())
        set_plain(self, "cls_name", type(self).__name__)
        set_plain(self, "scope_name", "")
        set_plain(self, "training", False)
        # Source: MindSpore: "train" until `set_train(False)`.
        set_plain(self, "phase", "train")
        set_plain(self, "param_prefix", "")
        set_plain(self, "requires_grad", False)

    # -- running ------------------------------------------------------------------------------------

    def construct(self, *inputs: Any, **kwargs: Any) -> Any:
        """What the cell computes; subclasses write it."""
        raise AttributeError(f"For '{self.cls_name}', the method 'construct' is not defined. Define it.")

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "__init__" in vars(cls) and cls.__module__.startswith(_SHIM):
            cls.__init__ = located(cls.__name__)(cls.__init__)  # type: ignore[method-assign]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        try:
            return self._called(args, kwargs)
        except Exception as error:
            tell(error, type(self).__name__, args, kwargs)
            raise

    def _called(self, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        if "_cells" not in self.__dict__:
            raise AttributeError(
                f"The '{type(self).__name__}' object does not inherit attribute from 'cell'. "
                "Please use 'super().__init__()'."
            )
        tracer = current_tracer()
        if tracer is None:
            if self._declared_inputs is not None:
                check_inputs(self._declared_inputs, args)
            if get_context("mode") == GRAPH_MODE:
                return self._run_compiled(args, kwargs)
            session = step_session(self._jit_level)
            if session is not None:
                return run_step(session, self._body(None), self._cache, args, kwargs, self)
            if self.takes_gradients:
                return run_recorded(self._body(None), args, kwargs, self)
        with self.entered(tracer):
            inputs = self._lowered(args)
            if tracer is None or not self.requires_grad or not tracer.expects_gradients:
                return self._body(tracer)(*inputs, **kwargs)
            with tracer.differentiating():
                outputs = self._body(tracer)(*inputs, **kwargs)
            tracer.remember_call(self, args, kwargs, outputs)
            return outputs

    @property
    def takes_gradients(self) -> bool:
        """Does `construct` take gradients of what it has run already?"""
        return False

    def _body(self, tracer: Tracer | None) -> Callable[..., Any]:
        """What a call runs: `construct`, with the gradient and the hooks that the script gave this cell.

        tracer   of the program that calls this cell; None: the cell is the program
        """
        body: Callable[..., Any] = self.construct
        bprop = getattr(type(self), "bprop", None)
        if tracer is not None and bprop is not None and tracer.is_differentiating:
            body = partial(self._with_bprop, tracer)
        if not self._hooks:
            return body

        @wraps(self.construct)
        def hooked(*args: Any, **kwargs: Any) -> Any:
            return self._hooks.run(self, current_tracer(), body, args, kwargs)

        return hooked

    def _with_bprop(self, tracer: Tracer, *args: Any, **kwargs: Any) -> Any:
        return with_bprop(tracer, self.cls_name, self.bprop, self.construct, args, kwargs)

    def compile(self, *args: Any, **kwargs: Any) -> None:
        """Compile for these arguments without running."""
        compiled(self._body(None), self._cache, args, kwargs, self, self._jit_level)

    def _run_compiled(self, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        return call_in_graph_mode(self._body(None), self._cache, args, kwargs, self, self._jit_level)

    @contextmanager
    def entered(self, tracer: Tracer | None) -> Iterator[None]:
        """While this is open, operators belong to this cell and compute in its dtype."""
        with ExitStack() as stack:
            if tracer is not None:
                tracer.expects_gradients |= self.takes_gradients
                stack.enter_context(tracer.inside(self))
            if self._precision is not None:
                stack.enter_context(computing_in(self._precision))
            yield

    def _lowered(self, args: Sequence[Any]) -> Sequence[Any]:
        """In a graph, float arguments in the dtype of `to_float`; in PyNative, operators cast their operands."""
        precision, tracer = self._precision, current_tracer()
        if precision is None or not precision.is_plain or tracer is None or tracer.is_recording:
            return args
        return [_cast_floats(arg, precision.dtype) for arg in args]

    def compile_flags(self) -> tuple[object, ...]:
        """What a graph depends on besides its inputs."""
        return (
            self.training,
            self._precision,
            self._flags.get(MARK),
            self.has_open_inputs,
            self._hooks.state() if self._hooks else (),
        )

    # -- attributes ---------------------------------------------------------------------------------

    def __setattr__(self, name: str, value: Any) -> None:
        cells, params = self.__dict__.get("_cells"), self.__dict__.get("_params")
        if isinstance(value, Parameter | Cell | ParameterTuple) and (cells is None or params is None):
            raise AttributeError(
                f"For 'Cell', the function '__init__' must be called before '{name}' is set. "
                "Please use 'super().__init__()'."
            )
        if cells is not None and params is not None:
            tracer = current_tracer()
            is_graph = tracer is not None and not tracer.is_recording
            if name in params and self._is_assigned(name, value, is_graph):
                return
            if tracer is not None and is_graph:
                self._note_write(tracer, name, value)
            cells.pop(name, None)
            params.pop(name, None)
        if isinstance(value, Parameter):
            self._insert_param(name, value)
        elif isinstance(value, Cell):
            self._insert_child(name, value)
        elif isinstance(value, ParameterTuple):
            for parameter in value:
                self.insert_param_to_cell(parameter.name, parameter, check_name_contain_dot=False)
            object.__setattr__(self, name, value)
        else:
            object.__setattr__(self, name, value)

    def _is_assigned(self, name: str, value: Any, is_graph: bool) -> bool:
        """Write a tensor, or in a graph also a number, to the parameter of this name.

        Edges:  outside of a graph another Parameter or None takes the parameter's place.
        Raises: TypeError for anything else.   Source: MindSpore: an assignment is the operator Assign.
        """
        parameter = self._params[name]
        if is_graph:
            if not isinstance(value, Tensor | int | float):
                raise TypeError(
                    f"{user_line() or self.cls_name}: expected a Tensor or a number for the parameter '{name}', got "
                    f"{type(value).__name__}. A parameter stays a parameter while a graph runs."
                )
            attached_functions().assign(parameter, value)
            return True
        if isinstance(value, Parameter) or value is None:
            return False
        if not isinstance(value, Tensor):
            raise TypeError(
                f"Parameter '{name}' already exists in network, can not assign this type: '{type(value)}' as a "
                "parameter."
            )
        attached_functions().assign(parameter, value)
        return True

    def _note_write(self, tracer: Tracer, name: str, value: Any) -> None:
        """A construct that is traced sets an attribute: it will get its value anew at each run of the graph.

        Raises: TypeError for an attribute that was there before with another value: a graph would not see that it
                changes.   Source: MindSpore 2.0.
        """
        if isinstance(getattr(type(self), name, None), property):
            return
        before = getattr(self, name) if name in self.__dict__ or hasattr(type(self), name) else _MISSING
        if before is not _MISSING and name not in self._written and not is_same_constant(before, value):
            raise TypeError(
                f"{user_line() or self.cls_name}: 'self.{name}' should be initialized as a 'Parameter' type in the "
                f"'__init__' function, but got '{before}' with type '{type(before).__name__}'. A compiled graph "
                "computes the same at each call; only parameters change between calls."
            )
        if before is _MISSING or name in self._written:
            self._written.add(name)
            tracer.note_write(self, name)

    def __delattr__(self, name: str) -> None:
        tracer = current_tracer()
        if tracer is not None and not tracer.is_recording:
            raise RuntimeError(
                f"{user_line() or self.cls_name}: expected no 'del' of an attribute while a graph is traced, got "
                f"'{name}'. Delete it before the cell is called."
            )
        self._cells.pop(name, None)
        self._params.pop(name, None)
        object.__delattr__(self, name)

    def __getattr__(self, name: str) -> Any:
        """Only for names that are not there."""
        names = [key for key in (*dir(type(self)), *self.__dict__) if not key.startswith("_")]
        message = f"The '{type(self).__name__}' object has no attribute '{name}'."
        # Python itself asks for some, to see what an object can do.
        text = message if name.startswith("__") else f"{message} {advice('Cell', name, names, left_out('Cell', name))}"
        raise AttributeError(text, name=name, obj=self)

    def insert_param_to_cell(
        self, param_name: str, param: Parameter | None, check_name_contain_dot: bool = True
    ) -> None:
        """Make `param` a parameter of this cell; a parameter without a name gets this one. None keeps the name.

        Raises: KeyError for a name with a dot or that is taken, TypeError for anything but a Parameter or None.
        """
        if param is not None and not isinstance(param, Parameter):
            raise TypeError(
                f"For 'insert_param_to_cell', the argument 'param' must be 'Parameter' if not None, but got "
                f"{type(param)}."
            )
        if check_name_contain_dot and "." in param_name:
            raise KeyError(
                f"For 'insert_param_to_cell', the argument 'param_name' should not contain '.', but got {param_name}."
            )
        if param_name not in self._params and getattr(self, param_name, None) is not None:
            raise KeyError(
                f"For 'insert_param_to_cell', the {param_name} parameter already exists in the network. Cannot insert "
                "another parameter with the same name."
            )
        if param is None:
            object.__setattr__(self, param_name, None)
        else:
            self._insert_param(param_name, param)

    def _insert_param(self, name: str, param: Parameter) -> None:
        if param.name == DEFAULT_NAME:
            param.name = name
        self._params[name] = param
        object.__setattr__(self, name, param)

    def insert_child_to_cell(self, child_name: str, child_cell: Cell | None) -> None:
        """Make `child_cell` a child of this cell, in the place of a child of that name. None keeps the name.

        Raises: KeyError for a name that is empty, has a dot, or is an attribute; TypeError for anything but a text and
                a Cell or None.
        """
        if not isinstance(child_name, str):
            raise TypeError(
                f"For 'insert_child_to_cell', the type of parameter 'child_name' must be str, but got "
                f"{type(child_name)}."
            )
        if not child_name or "." in child_name:
            raise KeyError(
                "For 'insert_child_to_cell', the parameter 'child_name' can not be empty and can not contain '.', but "
                f"got {child_name!r}."
            )
        if child_name not in self._cells and getattr(self, child_name, None) is not None:
            raise KeyError(
                f"For 'insert_child_to_cell', the {child_name} child cell already exists in the network. Cannot insert "
                "another child cell with the same name."
            )
        if child_cell is None:
            object.__setattr__(self, child_name, None)
            return
        if not isinstance(child_cell, Cell):
            raise TypeError(
                f"For 'insert_child_to_cell', the argument 'child_cell' must be 'Cell' if not None, but got "
                f"{type(child_cell)}."
            )
        self._insert_child(child_name, child_cell)

    def _insert_child(self, name: str, child: Cell) -> None:
        if self._auto_prefix:
            child.update_parameters_name(name + ".")
        self._cells[name] = child
        object.__setattr__(child, "scope_name", name)
        object.__setattr__(self, name, child)

    def update_parameters_name(self, prefix: str = "", recurse: bool = True) -> None:
        """Name every parameter after its place below this cell, with `prefix` before it."""
        for name, parameter in list(self.parameters_and_names(expand=recurse)):
            parameter.name = prefix + name

    def update_cell_prefix(self) -> None:
        """Let every cell know its place below this one, as `param_prefix`; parameters keep their names."""
        for name, cell in self.cells_and_names():
            object.__setattr__(cell, "param_prefix", name)

    def path_to(self, cell: Cell) -> list[tuple[str, Cell]]:
        """Names and cells from this cell to one that it calls; containers on the way are part of it."""
        for name, child in self._cells.items():
            if child is cell:
                return [(name, child)]
        for name, child in self._cells.items():
            if child.is_container and (rest := child.path_to(cell)):
                return [(name, child), *rest]
        return []

    # -- parameters and children --------------------------------------------------------------------

    def cells_and_names(self, cells: Any = None, name_prefix: str = "") -> Iterator[tuple[str, Cell]]:
        """This cell and all below it, each once, with their names.   cells: those to leave out"""
        yield from _walk(self, name_prefix, {id(each) for each in cells or ()})

    def cells(self) -> Any:
        return self.name_cells().values()

    def name_cells(self) -> OrderedDict[str, Cell]:
        """Direct children, each once."""
        seen: dict[int, str] = {}
        for name, child in self._cells.items():
            seen.setdefault(id(child), name)
        return OrderedDict((name, self._cells[name]) for name in seen.values())

    def get_sub_cell(self, name: str) -> Cell:
        """The cell of a place such as "block.0.conv", this one for "".   Raises: AttributeError for another place."""
        cell: Any = self
        for part in filter(None, name.split(".")):
            cell = cell._cells[part] if part in cell._cells else getattr(cell, part)
        return cell

    def parameters_and_names(self, name_prefix: str = "", expand: bool = True) -> Iterator[tuple[str, Parameter]]:
        """Each parameter once, with its place as its name."""
        seen: set[int] = set()
        walk = self.cells_and_names(None, name_prefix) if expand else iter([(name_prefix, self)])
        for prefix, cell in walk:
            for name, parameter in cell._params.items():
                if id(parameter) not in seen:
                    seen.add(id(parameter))
                    yield (f"{prefix}.{name}" if prefix else name), parameter

    def get_parameters(self, expand: bool = True) -> Iterator[Parameter]:
        for _, parameter in self.parameters_and_names(expand=expand):
            yield parameter

    def trainable_params(self, recurse: bool = True) -> list[Parameter]:
        return [parameter for parameter in self.get_parameters(expand=recurse) if parameter.requires_grad]

    def untrainable_params(self, recurse: bool = True) -> list[Parameter]:
        return [parameter for parameter in self.get_parameters(expand=recurse) if not parameter.requires_grad]

    def parameters_dict(self, recurse: bool = True) -> OrderedDict[str, Parameter]:
        """Parameter by name."""
        return OrderedDict((parameter.name, parameter) for parameter in self.get_parameters(expand=recurse))

    def init_parameters_data(self, auto_parallel_mode: bool = False) -> dict[Parameter, Parameter]:
        """Parameter by parameter that it stands for: itself, because each has its data from the beginning."""
        return {parameter: parameter for parameter in self.get_parameters()}

    # -- hooks --------------------------------------------------------------------------------------

    def register_forward_pre_hook(self, hook_fn: Hook, with_kwargs: bool = False) -> HookHandle:
        """Call `hook_fn(cell, inputs)` before `construct`; what it returns, unless None, becomes the inputs."""
        check_hook(hook_fn, "register_forward_pre_hook")
        return HookHandle(self._hooks.before, (hook_fn, with_kwargs))

    def register_forward_hook(self, hook_fn: Hook, with_kwargs: bool = False) -> HookHandle:
        """Call `hook_fn(cell, inputs, output)` after `construct`; what it returns, unless None, becomes the output."""
        check_hook(hook_fn, "register_forward_hook")
        return HookHandle(self._hooks.after, (hook_fn, with_kwargs))

    def register_backward_pre_hook(self, hook_fn: Hook) -> HookHandle:
        """Call `hook_fn(cell, grad_output)` before the cell's backward pass; it may return other gradients."""
        check_hook(hook_fn, "register_backward_pre_hook")
        return HookHandle(self._hooks.before_backward, (hook_fn,))

    def register_backward_hook(self, hook_fn: Hook) -> HookHandle:
        """Call `hook_fn(cell, grad_input, grad_output)` after the cell's backward pass; it may return other gradients
        of the inputs."""
        check_hook(hook_fn, "register_backward_hook")
        return HookHandle(self._hooks.after_backward, (hook_fn,))

    # -- switches -----------------------------------------------------------------------------------

    def set_train(self, mode: bool = True) -> Cell:
        """Switch this cell and all below it to training or evaluation."""
        for _, cell in self.cells_and_names():
            object.__setattr__(cell, "training", bool(mode))
            object.__setattr__(cell, "phase", "train" if mode else "predict")
        return self

    def set_grad(self, requires_grad: bool = True) -> Cell:
        """Remember that gradients are wanted."""
        object.__setattr__(self, "requires_grad", requires_grad)
        return self

    @located("to_float")
    def to_float(self, dst_type: DType) -> Cell:
        """Compute in `dst_type`, with parameters kept as they are.   Raises: ValueError for anything but a float."""
        if dst_type not in _FLOATS:
            raise ValueError(
                "For 'to_float', the argument 'dst_type' must be mstype.float32, mstype.float16 or mstype.bfloat16, "
                f"but got type: {type(dst_type)} and value: {dst_type}."
            )
        for _, cell in self.cells_and_names():
            cell.set_precision(Precision(dtype_name(dst_type)))
        return self.add_flags_recursive(fp16=dst_type == float16, fp32=dst_type == float32, bf16=dst_type == bfloat16)

    def set_precision(self, precision: Precision) -> None:
        """How operators of this cell, and of those below that have no precision of their own, treat floats."""
        object.__setattr__(self, "_precision", precision)

    @property
    def precision(self) -> Precision | None:
        """What `to_float` or mixed precision set, None when nothing did."""
        return self._precision

    def add_flags(self, **flags: Any) -> Cell:
        """Attach flags; each is an attribute, too."""
        self._flags.update(flags)
        for name, value in flags.items():
            object.__setattr__(self, name, value)
        return self

    def add_flags_recursive(self, **flags: Any) -> Cell:
        for _, cell in self.cells_and_names():
            cell.add_flags(**flags)
        return self

    def get_flags(self) -> dict[str, Any]:
        return dict(self._flags)

    def set_jit_config(self, jit_config: JitConfig) -> None:
        """How this cell is compiled: `jit_level` O0 decides on the folders of a dump through ACL, the rest is kept.

        Raises: TypeError for anything but a JitConfig.
        """
        if not isinstance(jit_config, JitConfig):
            raise TypeError(f"For 'set_jit_config', expected a JitConfig, got {type(jit_config).__name__}.")
        self._flags["jit_config"] = jit_config
        object.__setattr__(self, "_jit_level", jit_config.jit_level)

    @property
    def jit_config_dict(self) -> dict[str, Any]:
        """The settings of `set_jit_config`; empty before it."""
        return self._flags["jit_config"].jit_config_dict if "jit_config" in self._flags else {}

    def set_inputs(self, *inputs: Any) -> None:
        """Declare what the cell is called with; None in a tensor's shape leaves a dimension open.

        Every input signature gets a graph of its own all the same; calls that do not fit raise ValueError.
        """
        object.__setattr__(self, "_declared_inputs", inputs)

    @property
    def has_open_inputs(self) -> bool:
        """Did `set_inputs` leave a dimension open, so that graphs of this cell count as dynamic?"""
        return self._declared_inputs is not None and has_open_shape(self._declared_inputs)

    def recompute(self, **kwargs: Any) -> None:
        """Accepted: nothing is computed twice here."""
        self._flags["recompute"] = kwargs

    # -- text ---------------------------------------------------------------------------------------

    def extend_repr(self) -> str:
        """Arguments that `repr` shows; subclasses write it."""
        return ""

    def __repr__(self) -> str:
        head = f"{type(self).__name__}<{self.extend_repr()}"
        if not self._cells:
            return head + ">"
        children = [f"({name}): {cell!r}".replace("\n", "\n  ") for name, cell in self._cells.items()]
        return head + "".join(f"\n  {child}" for child in children) + "\n  >"


_FLOATS = (float16, float32, bfloat16)
_CASTABLE = (*_FLOATS, float64)


def _cast_floats(arg: Any, dtype: str) -> Any:
    if isinstance(arg, tuple | list):
        return type(arg)(_cast_floats(item, dtype) for item in arg)
    return cast(arg, dtype) if isinstance(arg, Tensor) and arg.dtype in _CASTABLE else arg


_MISSING = object()


def _walk(cell: Cell, prefix: str, seen: set[int]) -> Iterator[tuple[str, Cell]]:
    if id(cell) in seen:
        return
    seen.add(id(cell))
    yield prefix, cell
    for name, child in cell._cells.items():
        yield from _walk(child, f"{prefix}.{name}" if prefix else name, seen)
