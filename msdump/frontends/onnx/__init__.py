"""Models from `.onnx` files: every operator runs alone in onnxruntime, so that all that it reads and makes is seen.

model = load_model("resnet50.onnx", observers)
outputs = model.run({"data": images})
"""

from __future__ import annotations

from msdump.frontends.onnx.inference import DeclaredTensor
from msdump.frontends.onnx.model import OnnxModel, load_model

__all__ = ["DeclaredTensor", "OnnxModel", "load_model"]
