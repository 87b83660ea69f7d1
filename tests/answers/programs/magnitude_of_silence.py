"""The magnitude of a spectrum is the root of its squares; a silent frame has gradients of Inf times 0."""

import sys

import torch

ANSWER = {
    "kind": "lines",
    "entry": "eager",
    "ask": "nan {faulty}",
    "operator": "Gradients",
    "step": 2,
    "wants": "the gradient of the square root, with the line of the root in place of that of backward()",
}
FAULT = sys.argv[1] == "faulty"


def spectrogram(wave):
    spectrum = torch.fft.rfft(wave)
    return torch.sqrt(spectrum.real**2 + spectrum.imag**2)  # fault


torch.manual_seed(0)
model = torch.nn.Linear(16, 16, bias=False)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(4):
    wave = torch.randn(3, 16)
    if FAULT and step == 2:
        wave[1] = 0
    loss = (spectrogram(model(wave)) - spectrogram(wave)).abs().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
