"""`mindspore.dataset.text`: vocabularies, tokenizers and transforms of strings."""

from __future__ import annotations

from msdump.mindspore.dataset.text.string_transforms import (
    AddToken,
    CaseFold,
    Ngram,
    NormalizeUTF8,
    RegexReplace,
    SlidingWindow,
    ToNumber,
    Truncate,
    TruncateSequencePair,
)
from msdump.mindspore.dataset.text.tokenizers import (
    BasicTokenizer,
    BertTokenizer,
    JiebaTokenizer,
    PythonTokenizer,
    RegexTokenizer,
    SentencePieceTokenizer,
    SentencePieceVocab,
    UnicodeCharTokenizer,
    UnicodeScriptTokenizer,
    WhitespaceTokenizer,
    WordpieceTokenizer,
)
from msdump.mindspore.dataset.text.utils import (
    JiebaMode,
    NormalizeForm,
    SentencePieceModel,
    SPieceTokenizerLoadType,
    SPieceTokenizerOutType,
    to_bytes,
    to_str,
)
from msdump.mindspore.dataset.text.vocab import FastText, GloVe, Lookup, ToVectors, Vectors, Vocab
from msdump.mindspore.names import explain_missing, publish_all

publish_all(__name__)

__getattr__ = explain_missing(__name__)
