"""The decoder of a port resizes its features with aligned corners, that of the first implementation does not."""

import sys

import torch

ANSWER = {
    "kind": "ports that differ",
    "entry": "eager",
    "ask": "compare {faulty} {golden}",
    "operator": "aten.upsample_bilinear2d",
    "says": ["align_corners"],
    "wants": "the resize, its line, and that align_corners differs",
}

FAULT = sys.argv[1] == "faulty"

torch.manual_seed(0)
encoder = torch.nn.Conv2d(1, 4, 3, stride=2, padding=1)
decoder = torch.nn.Conv2d(4, 1, 3, padding=1)
with torch.no_grad():
    features = encoder(torch.rand(1, 1, 12, 12)).relu()
    large = torch.nn.functional.interpolate(features, scale_factor=2, mode="bilinear", align_corners=FAULT)  # fault
    picture = decoder(large).sigmoid()
