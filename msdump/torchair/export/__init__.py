"""torchair.dynamo_export: a model as a file of GE operators that CANN's ATC compiles.

dynamo_export  the function: compile, run once, write
weights        parameters and buffers become constants, or files beside the model
air            the bytes of the model's file
deployment     the two JSON files for a model of several devices
"""
