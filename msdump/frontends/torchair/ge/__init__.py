"""A PyTorch graph as the compiler of an NPU sees it: operators of the graph engine (GE), run on torch kernels.

graph      the graph: GeGraph, GeOp, GeTensor
registry   converters (ATen operator -> GE operators) and kernels (GE operator -> torch)
builder    what a converter builds with
convert    an FX graph becomes a GeGraph
program    a GeGraph becomes something that runs
compile    all of it, with the passes in between
"""
