"""What is known of an operator by its name: one table for all dialects, `operators.csv`, and the questions asked of it.

table       reads the table; which row an operator has, and what that row says
kinds       which operators of MindSpore, GE, ATen, ONNX and msprobe compute the same, and what their operands are
traits      what an operator does to memory, to infinities and to values that no operator has written
attributes  attributes that must agree, with the names and defaults of each dialect
codes       operators of quantised models
"""
