"""How far two tensors are apart, and how far apart two right runs may be."""
