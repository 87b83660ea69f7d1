"""A run ended before its first step: its table of statistics has a title and no row."""

import sys
from pathlib import Path

ANSWER = {
    "kind": "commands",
    "entry": "eager",
    "run": "python {script} {mode}",
    "ask": "ls {faulty}",
    "line": False,
    "exit": 3,
    "says": ["holds no row"],
    "wants": "that the table holds no row, and the status of nothing",
}

FAULT = sys.argv[1] == "faulty"

folder = Path(sys.argv[1], "rank_0", "Net", "0", "0")
folder.mkdir(parents=True)
title = (
    "Op Type,Op Name,Task ID,Stream ID,Timestamp,IO,Slot,Data Size,Data Type,Shape,Max Value,Min Value,Avg Value,Count"
)
row = "Add,Add-op0,0,0,1700000000000001,output,0,8,float32,(2),2,1,1.5,2"
(folder / "statistic.csv").write_text("\n".join([title] if FAULT else [title, row]) + "\n")
