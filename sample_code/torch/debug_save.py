"""Doubles a tensor in a compiled model, and saves everything there is to know about how it was compiled."""

import argparse
import logging
import os

# Before torchair is imported: its log is switched on by the import.
os.environ["TORCH_COMPILE_DEBUG"] = "1"

import torch
import torchair

# What goes into torchdynamo/debug.log.
torch._logging.set_logs(dynamo=logging.DEBUG, aot=logging.DEBUG, output_code=True, graph_code=True)


class Model(torch.nn.Module):
    def forward(self, x):
        return 2 * x


def make_backend(mode):
    config = torchair.CompilerConfig()
    config.mode.value = mode
    if mode == "max-autotune":
        config.debug.graph_dump.type = "pbtxt"
        config.debug.graph_dump.path = "./graphs"
    return torchair.get_npu_backend(compiler_config=config)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mode", choices=["max-autotune", "reduce-overhead"], default="max-autotune")
    mode = parser.parse_args().mode

    torch.manual_seed(0)
    model = torch.compile(Model(), backend=make_backend(mode), dynamic=False)
    if mode == "max-autotune":
        # A training step: model__0, forward and backward.
        x = torch.randn(10, 10, requires_grad=True)
        loss = torch.nn.MSELoss()(model(x), torch.randn(10, 10))
        loss.backward()
        print(f"loss: {loss.item():.4f}, gradient: {x.grad.norm().item():.4f}")

    # Another shape, without gradients: a model of its own, forward only.
    x = torch.randn(20, 20)
    print(f"doubled: {torch.equal(model(x), x + x)}")
    print(f"saved: {torch._dynamo.utils.get_debug_dir()}")


if __name__ == "__main__":
    main()
