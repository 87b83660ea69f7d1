"""The callback of Hugging Face's Trainer, with the real one where it is installed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
pytest.importorskip("accelerate")

import msdump  # noqa: E402
from msdump.integrations.transformers import DumpCallback  # noqa: E402
from tests.frontends.torch.eager.test_watch import config  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning")


class Model(torch.nn.Module):  # type: ignore[misc, name-defined]
    def __init__(self) -> None:
        super().__init__()
        self.end = torch.nn.Linear(4, 1)

    def forward(self, x: Any, labels: Any) -> Any:
        y = self.end(x)
        return {"loss": (y - labels).square().mean(), "logits": y}


def trainer_of(folder: Path, callbacks: list[Any], **settings: Any) -> Any:
    torch.manual_seed(0)
    arguments = transformers.TrainingArguments(
        output_dir=str(folder), per_device_train_batch_size=2, use_cpu=True, report_to=[], disable_tqdm=True,
        max_steps=3, seed=1, **settings,
    )  # fmt: skip
    rows = [{"x": torch.full((4,), float(row)), "labels": torch.ones(1)} for row in range(12)]
    return transformers.Trainer(
        model=Model(), args=arguments, train_dataset=rows, eval_dataset=rows[:3], callbacks=callbacks
    )


def steps_of(path: Path) -> set[int]:
    return {tensor.iteration for tensor in msdump.open(path).tensors() if tensor.iteration is not None}


@pytest.mark.parametrize("batches", [1, 2])
def test_steps_of_the_trainer_are_iterations(batches: int, tmp_path: Path) -> None:
    callback = DumpCallback(config(tmp_path / "dump"))
    settings = {"gradient_accumulation_steps": batches, "eval_strategy": "steps", "eval_steps": 1}
    watched = trainer_of(tmp_path / "a", [callback], **settings).train()
    assert steps_of(tmp_path / "dump") == {0, 1, 2}
    forward = [t for t in msdump.open(tmp_path / "dump").tensors(graph=0, io="output") if "addmm" in t.op_type]
    assert len(forward) == 3 * batches
    assert callback.report is not None and callback.report.iterations_dumped == 3
    assert trainer_of(tmp_path / "b", [], **settings).train().training_loss == watched.training_loss


def test_from_a_checkpoint_on(tmp_path: Path) -> None:
    trainer_of(tmp_path / "run", [], save_steps=2).train()
    callback = DumpCallback(config(tmp_path / "dump"))
    trainer_of(tmp_path / "run", [callback], save_steps=2).train(
        resume_from_checkpoint=str(tmp_path / "run" / "checkpoint-2")
    )
    assert steps_of(tmp_path / "dump") == {2}
