"""Makes the files beside it: small ones of a real MindSpore 2.0.0 dump, and a statistic.csv whose numbers are by hand.

    python tests/golden/sync/make_sync.py DUMP_TAR_GZ

DUMP_TAR_GZ is the packed dump of a LeNet-5 run (two training steps on CPU).
"""

from __future__ import annotations

import sys
import tarfile
from pathlib import Path

HERE = Path(__file__).parent
# One file for each kind of header: scalars of each dtype, one and four axes, a parameter with dots in its name.
WANTED = (
    ".dump_metadata/config.json",
    "execution_order/ms_global_execution_order_graph_0.csv",
    "execution_order/ms_execution_order_graph_0.csv",
    "LeNet/0/0/ApplyMomentum.ApplyMomentum-op100.0.0.1795173774201686.input.2.DefaultFormat.npy",
    "LeNet/0/0/ApplyMomentum.ApplyMomentum-op103.0.0.1795173774203480.input.0.DefaultFormat.npy",
)
WANTED_ENDS = ("Parameter.fc3.bias.0.0.1795173774208546.output.0.DefaultFormat.npy",)
WANTED_CONSTANTS = "LeNet/0/constants/"
STATISTIC = (
    "Op Type,Op Name,Task ID,Stream ID,Timestamp,IO,Slot,Data Size,Data Type,Shape,Max Value,Min Value,Avg Value,Count,"
    "Negative Zero Count,Positive Zero Count,NaN Count,Negative Inf Count,Positive Inf Count,Zero Count,MD5\n"
    'Add,Add-op1,0,0,1700000000000000,input,0,24,float32,"(2,3)",6,1,3.5,6,0,6,0,0,0,0,'
    "fa85978152c7dfb5f1322082915cb050\n"
    'Add,Add-op1,0,0,1700000000000001,input,1,24,float32,"(2,3)",12,7,9.5,6,0,6,0,0,0,0,'
    "9fd3b07ba2cfea7833f1da3a2960aadd\n"
    'Add,Add-op1,0,0,1700000000000002,output,0,24,float32,"(2,3)",18,8,13,6,0,6,0,0,0,0,'
    "72bb57525231b5c8d3176bc5497f8aa0\n"
)


def main() -> None:
    (HERE / "statistic.csv").write_text(STATISTIC, encoding="utf-8")
    with tarfile.open(sys.argv[1]) as archive:
        for member in archive.getmembers():
            name = member.name.partition("rank_0/")[2]
            is_small_constant = name.startswith(WANTED_CONSTANTS) and member.isfile() and member.size < 200
            if name in WANTED or (name.startswith("LeNet/0/0/") and name.endswith(WANTED_ENDS)) or is_small_constant:
                content = archive.extractfile(member)
                assert content is not None
                (HERE / Path(name).name).write_bytes(content.read())


if __name__ == "__main__":
    main()
