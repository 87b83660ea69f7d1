"""Whether a training learns: what that question adds to the search for NaN."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from benchmarks.dump_config import write_config
from benchmarks.dumps import write_npy_dump
from benchmarks.registry import Bench, Line, NotMeasurableError, Sample, row
from benchmarks.timing import scratch

SECTION = "Whether a training learns"
AGAINST = "the same search without that question, processor time"
MODELS = {"mlp": "a perceptron of 7 layers", "transformer": "a transformer of 2 layers"}
COUNT, ITERATIONS = 50_000, 10
STEPS = 60


@row(
    "learning",
    SECTION,
    {
        "files": Line("find_non_finite on 50,000 files of (8, 8), 10 iterations", AGAINST, "<= 1.03"),
        **{
            name: Line(f"find_non_finite on statistics of 60 steps of {title}", AGAINST, "<= 1.03")
            for name, title in MODELS.items()
        },
    },
    seconds=180,
)
def learning(bench: Bench) -> Iterator[Mapping[str, Sample]]:
    """In one process: the question's own time is part of the search's."""
    with scratch() as folder:
        dumps = {"files": folder / "files", **{name: folder / name / "dump" for name in MODELS}}
        for iteration in range(ITERATIONS):
            count = (2_000 if bench.is_quick else COUNT) // ITERATIONS
            write_npy_dump(dumps["files"], [256] * count, shape=(8, 8), iteration=iteration)
        for name in MODELS:
            _train(name, folder / name, 6 if bench.is_quick else STEPS)
        while True:
            yield {name: _measured(dump) for name, dump in dumps.items()}


def _measured(dump: Path) -> Sample:
    """Seconds of the processor: of the search, and of what is not the question."""
    from msdump.analysis.find import nan

    asked, seconds = nan.learning_findings, 0.0

    def timed(*arguments: Any) -> Any:
        nonlocal seconds
        started = time.process_time()
        found = asked(*arguments)
        seconds += time.process_time() - started
        return found

    nan.learning_findings = timed
    try:
        started = time.process_time()
        report = nan.find_non_finite(dump)
        whole = time.process_time() - started
    finally:
        nan.learning_findings = asked
    assert report.tensor_count and not report.learning, report.learning
    return whole, whole - seconds


def _train(name: str, folder: Path, steps: int) -> None:
    """Dump the statistics of a training in which nothing is wrong."""
    try:
        import torch
    except ImportError as error:
        raise NotMeasurableError("needs PyTorch") from error
    from torch import nn

    import msdump

    folder.mkdir()
    torch.manual_seed(1)
    if name == "mlp":
        layers = [nn.Linear(16, 32), nn.LayerNorm(32), nn.ReLU(), nn.Linear(32, 32), nn.LayerNorm(32), nn.ReLU()]
        model = nn.Sequential(*layers, nn.Linear(32, 16))
    else:
        layer = nn.TransformerEncoderLayer(16, 4, 64, dropout=0.1, batch_first=True)
        model = nn.Sequential(nn.TransformerEncoder(layer, 2), nn.Linear(16, 16))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    columns = ["max", "min", "avg", "l2norm"]
    with msdump.watch(model, write_config(folder, "all", saved_data="statistic", statistic_category=columns)):
        for _ in range(steps):
            x = torch.randn(8, 12, 16)
            loss = (model(x) - x.cumsum(1)).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
