"""`debug.graph_dump` and `debug.fx_summary`: the graphs of a compilation, and what operators they call, as files.

definition   a GeGraph as a GraphDef of ge_ir.proto
text         .txt: the GraphDef
tensorboard  .pbtxt: for TensorBoard and Netron
python       .py: as the calls that build it, between the FX nodes that they come from
emit         a GeGraph into a file of one of these types
files        names, modes and folders
observer     the files of one compilation
fx_summary   .csv: operators of an FX graph, and how often each is called
"""
