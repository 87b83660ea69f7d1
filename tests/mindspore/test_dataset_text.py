"""Transforms of texts. The expected values are those of MindSpore 2.7."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from msdump.mindspore import dataset as ds
from msdump.mindspore.dataset import text as X

quick = settings(max_examples=20, deadline=None)
SENTENCE = "Welcome  to Beijing! 北京欢迎您, don't 123 café [MASK] ＡＢＣ"
WELCOME = ["Welcome", "to", "Beijing", "!"]
WORDS = ["好", "is", "a", "unk", "##a", "北", "京", "un", "##aff", "##able", "[UNK]", "[CLS]", "wel", "##come"]
VOCAB = X.Vocab.from_list(WORDS, ["<pad>", "<unk>"])


def listed(result: Any) -> Any:
    return [part.tolist() for part in result] if isinstance(result, tuple) else result.tolist()


CASES: list[tuple[Callable[..., Any], tuple[Any, ...], Any]] = [
    (
        X.WhitespaceTokenizer(),
        (SENTENCE,),
        ["Welcome", "to", "Beijing!", "北京欢迎您,", "don't", "123", "café", "[MASK]", "ＡＢＣ"],
    ),
    (X.WhitespaceTokenizer(True), (" a 北 c",), [["a", "北", "c"], [1, 3, 7], [2, 6, 8]]),
    (X.WhitespaceTokenizer(), ("",), [""]),
    (X.UnicodeCharTokenizer(True), ("a北é",), [["a", "北", "é"], [0, 1, 4], [1, 4, 6]]),
    (
        X.BasicTokenizer(),
        (SENTENCE,),
        [*WELCOME, *"北京欢迎您", ",", "don", "'", "t", "123", "café", "[MASK]", "ＡＢＣ"],
    ),
    (X.BasicTokenizer(False, True), ("a  b [UNK]!",), ["a", "  ", "b", " ", "[UNK]", "!"]),
    (
        X.BasicTokenizer(True, False, X.NormalizeForm.NFC, True, True),
        ("Ab 北京, é",),
        [["ab", "北", "京", ",", "e"], [0, 3, 6, 9, 11], [2, 6, 9, 10, 12]],
    ),
    (X.BasicTokenizer(False, False, X.NormalizeForm.NFKC), ("ＡＢ ﬁ",), ["AB", "fi"]),
    (X.BasicTokenizer(preserve_unused_token=False), ("[CLS] a",), ["[", "CLS", "]", "a"]),
    (X.BasicTokenizer(), ("a\x00b\tc\u200bd",), ["a", "b", "c", "d"]),
    (
        X.WordpieceTokenizer(VOCAB),
        (["unaffable", "a", "zz", "welcome"],),
        ["un", "##aff", "##able", "a", "[UNK]", "wel", "##come"],
    ),
    (X.WordpieceTokenizer(VOCAB, unknown_token=""), (["zz", "una"],), ["zz", "un", "##a"]),
    (X.WordpieceTokenizer(VOCAB, max_bytes_per_token=3), (["unaffable"],), ["[UNK]"]),
    (
        X.WordpieceTokenizer(VOCAB, with_offsets=True),
        (["unaffable", "zz"],),
        [["un", "##aff", "##able", "[UNK]"], [0, 2, 5, 0], [2, 5, 9, 2]],
    ),
    (
        X.BertTokenizer(VOCAB, lower_case=True, with_offsets=True),
        ("Unaffable 北京",),
        [["un", "##aff", "##able", "北", "京"], [0, 2, 5, 10, 13], [2, 5, 9, 13, 16]],
    ),
    (X.TruncateSequencePair(5), ([1, 2, 3, 4], [5, 6, 7]), [[1, 2, 3], [5, 6]]),
    (X.TruncateSequencePair(4), (["a", "b", "c"], ["d", "e", "f"]), [["a", "b"], ["d", "e"]]),
    (X.Lookup(VOCAB, "<unk>"), (["is", "zz"],), [3, 1]),
    (X.PythonTokenizer(str.split), ("a b",), ["a", "b"]),
]


@pytest.mark.parametrize(("transform", "values", "expected"), CASES)
def test_values_are_those_of_mindspore(transform: Callable[..., Any], values: tuple[Any, ...], expected: Any) -> None:
    assert listed(transform(*map(np.array, values))) == expected


def test_vocabularies(tmp_path: Path) -> None:
    assert X.Vocab.from_list(["a", "b"], ["<p>"], False).vocab() == {"a": 0, "b": 1, "<p>": 2}
    assert X.Vocab.from_dict({"a": 3, "b": 1}).ids_to_tokens([3, 0]) == ["a", ""]
    assert VOCAB.tokens_to_ids(["is", "zz"]) == [3, -1]
    (tmp_path / "v").write_text("x,1\ny,2\nz,3\n")
    assert X.Vocab.from_file(tmp_path / "v", ",", 2).vocab() == {"x": 0, "y": 1}
    texts = ds.NumpySlicesDataset({"t": ["a b c a", "b a d"], "u": ["x", "y"]}, shuffle=False)
    split = texts.map(X.WhitespaceTokenizer(), ["t"])
    assert X.Vocab.from_dataset(split, "t", special_tokens=["<p>"]).vocab() == {
        "<p>": 0,
        "a": 1,
        "b": 2,
        "c": 3,
        "d": 4,
    }
    assert X.Vocab.from_dataset(split, ["t", "u"], (1, 2), 3).vocab() == {"b": 0, "c": 1, "d": 2}
    numbers = split.map(X.Lookup(X.Vocab.from_list(list("abcd"))), ["t"]).project("t")
    assert [row[0].tolist() for row in numbers.create_tuple_iterator(num_epochs=1, output_numpy=True)] == [
        [0, 1, 2, 0],
        [1, 0, 3],
    ]


def test_chinese_words_are_those_of_jieba(tmp_path: Path) -> None:
    jieba = pytest.importorskip("jieba")
    (tmp_path / "words").write_text("我们 900 r\n一起 800 d\n出去 70 v\n去 500 v\n玩 300 v\n", "utf-8")
    (tmp_path / "hmm").write_text("")
    (tmp_path / "more").write_text("我们一起\n\n玩吧 9000\n", "utf-8")
    paths = (str(tmp_path / "hmm"), str(tmp_path / "words"))
    text = np.array("我们一起去玩吧")
    words = X.JiebaTokenizer(*paths, X.JiebaMode.MP, True)
    tokens, starts, ends = words(text)
    assert tokens.tolist() == ["我们", "一起", "去", "玩", "吧"]
    assert (starts.tolist(), ends.tolist()) == ([0, 6, 12, 15, 18], [6, 12, 15, 18, 21])
    words.add_word("去玩", 9000)
    assert words(text)[0].tolist() == ["我们", "一起", "去玩", "吧"]
    words.add_dict(str(tmp_path / "more"))
    words.add_dict({"我们": 1})
    assert words(text)[0].tolist() == ["我们一起", "去", "玩吧"]
    assert X.JiebaTokenizer(*paths, X.JiebaMode.HMM)(text).tolist() == list(jieba.finalseg.cut(str(text)))
    assert "".join(X.JiebaTokenizer(*paths)(text)) == str(text)
    with pytest.raises(ValueError, match="expected a file, got none"):
        X.JiebaTokenizer(paths[0], str(tmp_path / "none"))
    with pytest.raises(TypeError, match="JiebaMode"):
        X.JiebaTokenizer(*paths, 1)


@quick
@given(text=st.text("ab 北é!,[]\tＡ", max_size=30))
def test_offsets_are_bytes_of_the_text(text: str) -> None:
    data = text.encode()
    for tokenizer in (
        X.WhitespaceTokenizer(True),
        X.UnicodeCharTokenizer(True),
    ):
        tokens, starts, ends = tokenizer(np.array(text))
        assert [data[first:last].decode() for first, last in zip(starts, ends, strict=True)] == tokens.tolist()


@pytest.mark.parametrize(
    ("build", "kind"),
    [
        (lambda: X.Vocab.from_list(["a", "a"]), ValueError),
        (lambda: X.Lookup(VOCAB)(np.array(["zz"])), RuntimeError),
        (lambda: X.Lookup(VOCAB)(np.array([1])), RuntimeError),
        (lambda: X.WhitespaceTokenizer()(np.array(["a b", "c"])), RuntimeError),
        (lambda: X.PythonTokenizer(str.split)("a b"), TypeError),
    ],
)
def test_wrong_arguments_are_refused_as_mindspore_does(build: Callable[[], Any], kind: type[Exception]) -> None:
    with pytest.raises(kind, match="expected"):
        build()
