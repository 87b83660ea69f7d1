"""The synchronous dump of an ONNX model holds what onnxruntime computed."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

from msdump.analysis import compare_dumps
from msdump.engine import opening
from msdump.formats.npy_reader import read_npy
from msdump.formats.paths.sync import parse_data_file_name
from msdump.frontends.onnx import load_model
from tests.engine.acl_plans import make_dump
from tests.frontends.onnx import models
from tests.frontends.onnx.models import same_bits, true_values


def test_the_sync_dump_of_a_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = tmp_path / "dump"
    common = {
        "dump_mode": 0, "path": str(root), "net_name": "Net", "iteration": "1", "saved_data": "full",
        "input_output": 0, "kernels": [], "support_device": [0],
    }  # fmt: skip
    config = tmp_path / "dump.json"
    config.write_text(
        json.dumps({"common_dump_settings": common, "e2e_dump_settings": {"enable": True, "trans_flag": True}})
    )
    monkeypatch.setenv("MINDSPORE_DUMP_CONFIG", str(config))
    session = opening.open_mindspore("CPU", 0)
    assert session is not None
    proto = models.convolutions(np.random.default_rng(0))
    model = load_model(proto, session.observers, iter([0]))
    batches = [np.random.default_rng(at).standard_normal((2, 3, 8, 8), np.float32) for at in range(3)]
    for batch in batches:
        model.run({"data": batch})
    session.close()

    truth = true_values(proto, {"data": batches[1]})
    found = {}
    for path in (root / "rank_0/Net/0/1").glob("*.npy"):
        name = parse_data_file_name(path.name)
        assert name is not None
        found[name.op_type, name.op_name, name.io, name.slot] = read_npy(path)
    assert same_bits(found.pop(("Parameter", "data", "output", 0)), batches[1])
    read = 0
    known = {"data": batches[1], **truth}
    for node in proto.graph.node:
        last = node.name.rpartition("/")[2]
        assert same_bits(found.pop((node.op_type, last, "output", 0)), truth[node.output[0]])
        for slot, operand in enumerate(node.input):
            array = found.pop((node.op_type, last, "input", slot))
            if operand in known:
                read += 1
                assert same_bits(array, known[operand])
    assert not found
    assert read == len(proto.graph.node)
    assert sorted(path.name for path in (root / "rank_0/Net/0").iterdir()) == ["1", "constants"]
    weights = [read_npy(path).tobytes() for path in (root / "rank_0/Net/0/constants").iterdir()]
    assert sorted(weights) == sorted(tensor.raw_data for tensor in proto.graph.initializer)
    assert len(list((root / "rank_0/Net/0/1").glob("statistic.csv"))) == 1


def test_fused_operators_meet_those_that_they_stand_for(tmp_path: Path) -> None:
    """Files of the model before it was compiled, by its names, against the dump of the compiled one."""
    proto = models.convolutions(np.random.default_rng(0))
    batch = np.random.default_rng(1).standard_normal((2, 3, 8, 8), np.float32)
    truth = true_values(proto, {"data": batch})
    golden = tmp_path / "golden"
    golden.mkdir()
    for number, node in enumerate(proto.graph.node):
        names = f'["first_{number}", "last_{number}"]'
        node.metadata_props.add(key="_datadump_original_op_names", value=names)
        np.save(golden / f"last_{number}.0.{1626345629146478 + number}.npy", truth[node.output[0]])
    dump = make_dump(tmp_path / "dump")
    model = load_model(proto, dump.observe_model(1, ["net"]), iter([0]))
    model.run({"data": batch})
    dump.close()
    found = compare_dumps(tmp_path / "dump", golden)
    assert {(one.pair.how, one.pair.golden.op_name) for one in found.operators} == {
        ("original name", f"last_{number}") for number in range(len(proto.graph.node))
    }
    assert all(one.outputs and one.is_agreeing for one in found.operators)
