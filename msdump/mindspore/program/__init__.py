"""Compiled programs: gradients, control flow, order, memory, and the executor that runs them."""
