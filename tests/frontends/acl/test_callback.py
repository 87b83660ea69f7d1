"""A dump that goes to a function of the script."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

from msdump.formats.bin import read_bin
from msdump.frontends import acl
from tests.frontends.acl.scripts import everything, files, ok, run_small, small_model


class Collected:
    """Puts the pieces together as a script would."""

    def __init__(self, result: Any = None) -> None:
        self.result = result
        self.data: dict[str, bytes] = {}
        self.ended: list[str] = []

    def __call__(self, piece: dict[str, Any]) -> Any:
        assert set(piece) == {"file_name", "data_buf", "buf_len", "is_last_chunk", "offset", "flag"}
        assert piece["offset"] == -1 and piece["flag"] == 0
        data = acl.util.ptr_to_bytes(piece["data_buf"], piece["buf_len"])
        self.data[piece["file_name"]] = self.data.get(piece["file_name"], b"") + data
        if piece["is_last_chunk"]:
            self.ended.append(piece["file_name"])
        return self.result


@pytest.mark.parametrize("is_set", [False, True])
def test_the_documented_order(is_set: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """init, register, init_dump, (set_dump,) load, execute, finalize_dump, unregister, unload, finalize."""
    monkeypatch.chdir(tmp_path)
    collected = Collected(0)
    ok(acl.init())
    ok(acl.mdl.dump_reg_callback(collected, 0))
    ok(acl.mdl.init_dump())
    if is_set:
        ok(acl.mdl.set_dump(everything(tmp_path)))
    model_id = ok(acl.mdl.load_from_file(small_model(tmp_path)))
    run_small(model_id, 2.0)
    ok(acl.mdl.finalize_dump())
    assert acl.mdl.dump_unreg_callback() is None  # type: ignore[func-returns-value]
    ok(acl.mdl.unload(model_id))
    ok(acl.finalize())
    assert not [path for path in tmp_path.rglob("*") if path.is_file() and path.suffix not in (".onnx", ".json")]
    assert sorted(name.rpartition("/")[2].split(".")[1] for name in collected.data) == ["add", "relu", "x"]
    assert sorted(collected.ended) == sorted(collected.data)
    (name,) = (name for name in collected.data if "/Relu.relu." in name)
    (tmp_path / "relu").write_bytes(collected.data[name])
    assert read_bin(tmp_path / "relu").tensors[0].array().tolist() == [[3, 3, 3], [3, 3, 3]]


@pytest.mark.parametrize("failure", ["raises", "returns"])
def test_a_callback_that_fails(failure: str, tmp_path: Path) -> None:
    def fails(piece: dict[str, Any]) -> int:
        if failure == "raises":
            raise KeyError("no place")
        return 5

    ok(acl.init())
    ok(acl.mdl.dump_reg_callback(fails, 0))
    ok(acl.mdl.init_dump())
    ok(acl.mdl.set_dump(everything(tmp_path)))
    model_id = ok(acl.mdl.load_from_file(small_model(tmp_path)))
    assert run_small(model_id).tolist() == [[2, 2, 2], [2, 2, 2]]
    assert acl.mdl.finalize_dump() == 500000
    text = acl.get_recent_err_msg()
    assert "the dump is not complete" in text and ("no place" if failure == "raises" else "got 5") in text
    ok(acl.mdl.finalize_dump())


def test_files_again_after_unregistering(tmp_path: Path) -> None:
    collected = Collected()
    ok(acl.init())
    ok(acl.mdl.dump_reg_callback(collected, 0))
    acl.mdl.dump_unreg_callback()
    ok(acl.mdl.init_dump())
    ok(acl.mdl.set_dump(everything(tmp_path)))
    run_small(ok(acl.mdl.load_from_file(small_model(tmp_path))))
    ok(acl.mdl.finalize_dump())
    assert len(files(tmp_path)) == 3 and not collected.data


def test_wrong_registrations() -> None:
    assert acl.mdl.dump_reg_callback(print, 0) == 100001
    ok(acl.init())
    assert acl.mdl.dump_reg_callback(print, 1) == 100000
    assert acl.get_recent_err_msg().splitlines()[-2].startswith("EP0006: flag: expected 0, got 1")
    with pytest.raises(TypeError, match="fn: expected a function"):
        acl.mdl.dump_reg_callback(3, 0)  # type: ignore[arg-type]
    assert sys.modules["msdump.frontends.acl"] is acl
