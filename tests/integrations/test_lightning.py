"""The callback of Lightning's Trainer, with the real one where it is installed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
lightning = pytest.importorskip("lightning.pytorch")

import msdump  # noqa: E402
from msdump.integrations.lightning import DumpCallback  # noqa: E402
from tests.frontends.torch.eager.test_watch import config  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")


class Model(lightning.LightningModule):  # type: ignore[misc, name-defined]
    def __init__(self, fails_at: int = -1) -> None:
        super().__init__()
        self.end = torch.nn.Linear(4, 1)
        self.fails_at = fails_at

    def training_step(self, batch: Any, index: int) -> Any:
        if index == self.fails_at:
            raise RuntimeError("out of luck")
        return self.end(batch).square().mean()

    def validation_step(self, batch: Any, index: int) -> None:
        self.end(batch)

    def configure_optimizers(self) -> Any:
        return torch.optim.SGD(self.parameters(), 0.1)


def fit(folder: Path, callbacks: list[Any], model: Any = None, path: str | None = None, **settings: Any) -> Any:
    torch.manual_seed(0)
    trainer = lightning.Trainer(
        default_root_dir=folder, max_steps=settings.pop("max_steps", 3), accelerator="cpu", logger=False,
        enable_progress_bar=False, enable_model_summary=False, callbacks=callbacks, **settings,
    )  # fmt: skip
    loader = torch.utils.data.DataLoader([torch.full((4,), float(row)) for row in range(12)], batch_size=2)
    model = model or Model()
    trainer.fit(model, loader, loader, ckpt_path=path)
    return trainer


def steps_of(path: Path) -> set[int]:
    return {tensor.iteration for tensor in msdump.open(path).tensors() if tensor.iteration is not None}


@pytest.mark.parametrize("batches", [1, 2])
def test_steps_of_the_trainer_are_iterations(batches: int, tmp_path: Path) -> None:
    callback = DumpCallback(config(tmp_path / "dump"))
    settings = {"accumulate_grad_batches": batches, "val_check_interval": 2, "enable_checkpointing": False}
    fit(tmp_path, [callback], **settings)
    assert steps_of(tmp_path / "dump") == {0, 1, 2}
    forward = [t for t in msdump.open(tmp_path / "dump").tensors(graph=0, io="output") if "addmm" in t.op_type]
    assert len(forward) == 3 * batches
    assert callback.report is not None and callback.report.iterations_dumped == 3


def test_from_a_checkpoint_on(tmp_path: Path) -> None:
    trainer = fit(tmp_path, [], max_steps=2)
    trainer.save_checkpoint(tmp_path / "two.ckpt")
    fit(tmp_path, [DumpCallback(config(tmp_path / "dump"))], path=str(tmp_path / "two.ckpt"))
    assert steps_of(tmp_path / "dump") == {2}


def test_a_step_that_raises_ends_the_dump(tmp_path: Path) -> None:
    callback = DumpCallback(config(tmp_path / "dump"))
    with pytest.raises(RuntimeError, match="out of luck"):
        fit(tmp_path, [callback], Model(fails_at=1), enable_checkpointing=False)
    assert 0 in steps_of(tmp_path / "dump")
    assert callback.report is not None
