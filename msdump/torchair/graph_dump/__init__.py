"""`debug.graph_dump` and `debug.fx_summary`: the graphs of a compilation, and what operators they call, as files.

definition   a GeGraph as a GraphDef of ge_ir.proto
python       .py: as the calls that build it, between the FX nodes that they come from
emit         its text: .txt, the GraphDef; .pbtxt, for TensorBoard and Netron; .py
files        names, modes and folders; the files of one compilation
fx_summary   .csv: operators of an FX graph, and how often each is called
"""
