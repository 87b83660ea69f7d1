"""torchair.core: the place of TorchAir's internals that its documentation names, `torchair.core.utils.logger`."""
