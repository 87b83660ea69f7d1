"""torchair._utils: helpers for passes of a script, where TorchAir has them."""
