"""A library of diffusion schedules divides by what is left of the signal; the script takes one step too many."""

import importlib
import pathlib
import sys

import torch

ANSWER = {
    "kind": "lines",
    "entry": "eager",
    "ask": "nan {faulty}",
    "operator": "aten.div",
    "step": 3,
    "says": ["scheduling.py"],
    "wants": "the division, with the line of the script that calls the schedule, and the library's beside it",
}
FAULT = sys.argv[1] == "faulty"

# What pip would have installed.
LIBRARY = pathlib.Path("lib/python3/site-packages/denoising")
LIBRARY.mkdir(parents=True, exist_ok=True)
(LIBRARY / "__init__.py").write_text("")
(LIBRARY / "scheduling.py").write_text(
    "def step(noise, sample, left):\n    return (sample - (1 - left) * noise) / (sample * 0 + left).sqrt()\n"
)
sys.path.insert(0, str(LIBRARY.parent.absolute()))
scheduling = importlib.import_module("denoising.scheduling")

torch.manual_seed(0)
model = torch.nn.Linear(4, 4)
sample = torch.zeros(1, 4)
with torch.no_grad():
    for left in (0.9, 0.6, 0.3, 0.0 if FAULT else 0.1):
        noise = model(sample)
        sample = scheduling.step(noise, sample, left)  # fault
