"""Records of what operators read and wrote, and of parameters."""

from __future__ import annotations

import numpy as np

from msdump.dump.snapshot import parameter_record
from msdump.records import OUTPUT, TensorKey


def test_a_parameter_is_an_output_of_no_task() -> None:
    """Its file is named `Parameter.NAME.0.0.TIME.output.0...`: no operator has made it, on no stream."""
    data, key = np.ones(2, np.float32), TensorKey(3, 1)
    record = parameter_record("fc.weight", "float32", data, key, 7, 2, 1700)
    assert (record.op_type, record.op_name, record.io, record.slot) == ("Parameter", "fc.weight", OUTPUT, 0)
    assert (record.task_id, record.stream_id, record.timestamp_us) == (0, 0, 1700)
    assert (record.iteration, record.graph_id, record.key) == (7, 2, key)
    assert record.is_parameter and record.data is data and record.dtype == "float32"
