"""The modes that capture a graph and replay it: reduce-overhead and npugraph_ex."""
