"""`mindspore.mindrecord`: MindSpore's file format for datasets, read and written without MindSpore."""

from __future__ import annotations

from msdump.mindspore.mindrecord.exceptions import *
from msdump.mindspore.mindrecord.reader import FileReader
from msdump.mindspore.mindrecord.writer import FileWriter
from msdump.mindspore.names import explain_missing, publish_all

SUCCESS = "SUCCESS"
FAILED = "FAILED"

publish_all(__name__, "FAILED", "SUCCESS")

__getattr__ = explain_missing(__name__)
