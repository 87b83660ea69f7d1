"ë
l

1

x0Add*
axis2
BDefault/Add-op0J+# In file a.py:3/x = y/
# In file b.py:4/z/
~

2

x1TupleGetItem*
axis2
BDefault/TupleGetItem-op1J+# In file a.py:3/x = y/
# In file b.py:4/z/
r

0

x2Depend*
axis2
BDefault/Depend-op2J+# In file a.py:3/x = y/
# In file b.py:4/z/graph_0