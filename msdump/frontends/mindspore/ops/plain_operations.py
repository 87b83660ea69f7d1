"""Operator classes of `mindspore.ops` without attributes: each is a function of `mindspore.ops` as an object."""

from __future__ import annotations

from msdump.frontends.mindspore.ops import function as F
from msdump.frontends.mindspore.ops.primitive import functional_primitive

__all__ = [
    "Abs",
    "Add",
    "AddN",
    "Assign",
    "AssignAdd",
    "AssignSub",
    "Cast",
    "Ceil",
    "Cos",
    "Depend",
    "Equal",
    "Erf",
    "Exp",
    "ExpandDims",
    "Fill",
    "Flatten",
    "Floor",
    "FloorDiv",
    "FloorMod",
    "Gather",
    "GatherD",
    "Greater",
    "GreaterEqual",
    "IsFinite",
    "IsInf",
    "IsNan",
    "Less",
    "LessEqual",
    "Log",
    "LogicalAnd",
    "LogicalNot",
    "LogicalOr",
    "Maximum",
    "Minimum",
    "Mul",
    "Neg",
    "NotEqual",
    "Ones",
    "OnesLike",
    "Pow",
    "Print",
    "Rank",
    "ReLU",
    "ReLU6",
    "Reciprocal",
    "Reshape",
    "Round",
    "Rsqrt",
    "Select",
    "Shape",
    "Sigmoid",
    "Sign",
    "Sin",
    "Size",
    "Sqrt",
    "Square",
    "StopGradient",
    "Sub",
    "Tanh",
    "TensorAdd",
    "Tile",
    "Transpose",
    "Unique",
    "Zeros",
    "ZerosLike",
]

Add = functional_primitive("Add", F.add, "x + y.")
TensorAdd = Add
Sub = functional_primitive("Sub", F.sub, "x - y.")
Mul = functional_primitive("Mul", F.mul, "x * y.")
Maximum = functional_primitive("Maximum", F.maximum, "The larger of each pair.")
Minimum = functional_primitive("Minimum", F.minimum, "The smaller of each pair.")
Pow = functional_primitive("Pow", F.pow, "x ** y.")
FloorDiv = functional_primitive("FloorDiv", F.floor_div, "x / y, rounded down.")
FloorMod = functional_primitive("FloorMod", F.floor_mod, "Remainder with the sign of y.")
Equal = functional_primitive("Equal", F.equal, "x == y.")
NotEqual = functional_primitive("NotEqual", F.not_equal, "x != y.")
Less = functional_primitive("Less", F.less, "x < y.")
LessEqual = functional_primitive("LessEqual", F.less_equal, "x <= y.")
Greater = functional_primitive("Greater", F.greater, "x > y.")
GreaterEqual = functional_primitive("GreaterEqual", F.greater_equal, "x >= y.")
LogicalAnd = functional_primitive("LogicalAnd", F.logical_and, "x and y.")
LogicalOr = functional_primitive("LogicalOr", F.logical_or, "x or y.")
LogicalNot = functional_primitive("LogicalNot", F.logical_not, "not x.")
Neg = functional_primitive("Neg", F.neg, "-x.")
Abs = functional_primitive("Abs", F.abs, "|x|.")
Square = functional_primitive("Square", F.square, "x * x.")
Sign = functional_primitive("Sign", F.sign, "-1, 0 or 1.")
Exp = functional_primitive("Exp", F.exp, "e ** x.")
Log = functional_primitive("Log", F.log, "Natural logarithm.")
Sqrt = functional_primitive("Sqrt", F.sqrt, "Square root.")
Rsqrt = functional_primitive("Rsqrt", F.rsqrt, "1 / square root.")
Sin = functional_primitive("Sin", F.sin, "Sine.")
Cos = functional_primitive("Cos", F.cos, "Cosine.")
Floor = functional_primitive("Floor", F.floor, "Rounded down.")
Ceil = functional_primitive("Ceil", F.ceil, "Rounded up.")
Round = functional_primitive("Round", F.round, "Rounded to the nearest.")
Reciprocal = functional_primitive("Reciprocal", F.reciprocal, "1 / x.")
Erf = functional_primitive("Erf", F.erf, "Gauss error function.")
IsNan = functional_primitive("IsNan", F.isnan, "Where x is NaN.")
IsInf = functional_primitive("IsInf", F.isinf, "Where x is infinite.")
IsFinite = functional_primitive("IsFinite", F.isfinite, "Where x is finite.")
ReLU = functional_primitive("ReLU", F.relu, "max(x, 0).")
ReLU6 = functional_primitive("ReLU6", F.relu6, "min(max(x, 0), 6).")
Sigmoid = functional_primitive("Sigmoid", F.sigmoid, "1 / (1 + e ** -x).")
Tanh = functional_primitive("Tanh", F.tanh, "Hyperbolic tangent.")
Flatten = functional_primitive("Flatten", F.flatten, "(N, ...) -> (N, rest).")
Reshape = functional_primitive("Reshape", F.reshape, "The same elements under another shape.")
Cast = functional_primitive("Cast", F.cast, "x in another dtype.")
Transpose = functional_primitive("Transpose", F.transpose, "Axes in another order.")
ExpandDims = functional_primitive("ExpandDims", F.expand_dims, "A new axis of size 1.")
Tile = functional_primitive("Tile", F.tile, "The tensor repeated.")
Shape = functional_primitive("Shape", F.shape, "Sizes as a tuple of ints.")
Rank = functional_primitive("Rank", F.rank, "Number of axes.")
Size = functional_primitive("Size", F.size, "Number of elements.")
Gather = functional_primitive("Gather", F.gather, "Slices at indices.")
GatherD = functional_primitive("GatherD", F.gather_elements, "One element per index.")
Select = functional_primitive("Select", F.select, "x where condition, else y.")
AddN = functional_primitive("AddN", F.addn, "Sum of a list of tensors.")
Assign = functional_primitive("Assign", F.assign, "Write to a parameter.")
AssignAdd = functional_primitive("AssignAdd", F.assign_add, "Add to a parameter.")
AssignSub = functional_primitive("AssignSub", F.assign_sub, "Subtract from a parameter.")
Depend = functional_primitive("Depend", F.depend, "The first operand, after the second was computed.")
Print = functional_primitive("Print", F.print_, "Print tensors and strings when the operator runs.")
StopGradient = functional_primitive("StopGradient", F.stop_gradient, "x, without gradient.")
ZerosLike = functional_primitive("ZerosLike", F.zeros_like, "Zeros of the same type.")
OnesLike = functional_primitive("OnesLike", F.ones_like, "Ones of the same type.")
Zeros = functional_primitive("Zeros", F.zeros, "Zeros of a shape and dtype.")
Ones = functional_primitive("Ones", F.ones, "Ones of a shape and dtype.")
Fill = functional_primitive("Fill", F.fill, "One value everywhere.")
Unique = functional_primitive("Unique", F.unique, "Distinct elements and places.")
