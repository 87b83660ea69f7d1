"""`mindspore.dataset.text`: vocabularies, tokenizers and transforms of strings."""

from __future__ import annotations

from msdump.mindspore.dataset.text.string_transforms import TruncateSequencePair
from msdump.mindspore.dataset.text.tokenizers import (
    BasicTokenizer,
    BertTokenizer,
    PythonTokenizer,
    UnicodeCharTokenizer,
    WhitespaceTokenizer,
    WordpieceTokenizer,
)
from msdump.mindspore.dataset.text.utils import NormalizeForm, to_bytes, to_str
from msdump.mindspore.dataset.text.vocab import Lookup, Vocab
from msdump.mindspore.names import explain_missing, publish_all

publish_all(__name__)

__getattr__ = explain_missing(__name__)
