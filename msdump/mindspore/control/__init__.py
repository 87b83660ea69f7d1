"""Control flow on tensors while a graph is traced: functions are rewritten so that both branches can be traced."""
