"""`mindspore.dataset.text`: vocabularies, tokenizers and transforms of strings."""

from __future__ import annotations

from msdump.mindspore.dataset.text.tokenizers import (
    BasicTokenizer,
    BertTokenizer,
    JiebaMode,
    JiebaTokenizer,
    PythonTokenizer,
    TruncateSequencePair,
    UnicodeCharTokenizer,
    WhitespaceTokenizer,
    WordpieceTokenizer,
)
from msdump.mindspore.dataset.text.vocab import Lookup, NormalizeForm, Vocab, to_bytes, to_str
from msdump.mindspore.names import explain_missing, publish_all

publish_all(__name__)

__getattr__ = explain_missing(__name__)
