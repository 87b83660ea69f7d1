"""The Chinese pages say what the English ones say today."""

from __future__ import annotations

import re

import pytest

from tests import chinese_pages
from tests.chinese_pages import NOT_YET, ROOT, changed, differences, fingerprints, translated, twin, untranslated


@pytest.mark.parametrize("name", translated())
def test_a_chinese_page_has_what_the_english_one_has(name: str) -> None:
    assert (ROOT / name).is_file(), f"{name} is gone, which {twin(ROOT / name)} translates"
    found = list(differences(ROOT / name))
    assert not found, f"{twin(ROOT / name)}:\n" + "\n".join(found[:8])


@pytest.mark.parametrize("name", translated())
def test_a_chinese_page_translates_the_english_text_of_today(name: str) -> None:
    titles = changed(name)
    assert not titles, (
        f"{name} changed in {', '.join(map(repr, titles))}. Translate these sections in {twin(ROOT / name)}, "
        f"then run python -m tests.chinese_pages {name}"
    )


def test_each_page_for_users_is_translated_or_in_the_list() -> None:
    assert untranslated() == NOT_YET, "Translate a new page, or name it in NOT_YET; take out what is translated."


@pytest.mark.parametrize("name", translated())
def test_code_runs_in_the_english_page_alone(name: str) -> None:
    """It is the same, so that one run shows both."""
    assert not re.search(r"^<!-- (file|run)", twin(ROOT / name).read_text(encoding="utf-8"), re.M)


ENGLISH = """# Title

A file of 2 bytes, 7 billion numbers, three parts, and `--out`: [more](a.md#more).

## Run

```bash
msdump run train.py  # as it is
```

| option | rows |
|---|---|
| `--steps` | 16,600 |
"""
TRANSLATION = """# 标题

[English](../page.md)

2 字节的文件、70 亿个数、3 个部分和 `--out`：[更多](a.md#更多)。

## 运行

```bash
msdump run train.py  # 原样运行
```

| 选项 | 行数 |
|---|---|
| `--steps` | 16600 |
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An English page and its translation, in a repository of their own."""
    docs = tmp_path / "docs"
    monkeypatch.setattr(chinese_pages, "ROOT", tmp_path)
    monkeypatch.setattr(chinese_pages, "DOCS", docs)
    monkeypatch.setattr(chinese_pages, "CHINESE", docs / "zh")
    monkeypatch.setattr(chinese_pages, "RECORD", tmp_path / "record.json")
    (docs / "zh").mkdir(parents=True)
    files = {
        "record.json": "{}",
        "README.md": "# A\n",
        "README.zh.md": "# A\n",
        "docs/a.md": "# A\n\n## More\n",
        "docs/zh/a.md": "# A\n\n[English](../a.md)\n\n## 更多\n",
        "docs/page.md": ENGLISH,
        "docs/zh/page.md": TRANSLATION,
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    return docs


def test_a_faithful_translation_has_no_differences(folder) -> None:
    assert list(differences(folder / "page.md")) == []


def test_a_paragraph_for_chinese_readers_alone_is_declared(folder) -> None:
    more = TRANSLATION + "\n<!-- only here -->\n`LANG=zh` 时，\n回答是中文。\n\n"
    assert list(differences(folder / "page.md", more)) == []
    assert len(list(differences(folder / "page.md", more + "`LANG=en`\n"))) == 1


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("## 运行", "### 运行", "titles"),
        ("2 字节", "4 字节", "numbers: lacks ['2'], has ['4']"),
        ("70 亿", "7 亿", "numbers: lacks ['7000000000'], has ['700000000']"),
        ("3 个部分", "5 个部分", "numbers: lacks [], has ['5']"),
        ("`--out`", "`--output`", "names in backquotes: lacks ['--out']"),
        ("a.md#更多", "../a.md#more", "links: lacks ['a.md#更多']"),
        ("[English](../page.md)\n", "", "links: lacks ['../page.md']"),
        ("msdump run train.py  #", "msdump run other.py  #", "lines of code: lacks ['msdump run train.py']"),
        ("```bash", "```sh", "blocks of code"),
        ("| 选项 | 行数 |", "| 选项 | 行数 | 说明 |", "rows of tables: lacks ['3'], has ['4']"),
        ("16600", "16000", "'运行' ('Run'), numbers"),
    ],
)
def test_what_a_translation_lost_is_named(folder, old: str, new: str, said: str) -> None:
    assert TRANSLATION.count(old) == 1
    found = list(differences(folder / "page.md", TRANSLATION.replace(old, new)))
    assert len(found) == 1 and said in found[0]


def test_a_changed_sentence_is_named_until_it_is_recorded(folder) -> None:
    assert chinese_pages.main(["docs/page.md"]) == 0 and changed("docs/page.md") == []
    wrapped = ENGLISH.replace("three parts, and", "three\nparts, and").replace("a.md#more", "a.md")
    assert fingerprints(wrapped) == fingerprints(ENGLISH)
    (folder / "page.md").write_text(ENGLISH.replace("| option |", "| switch |"))
    assert changed("docs/page.md") == ["Run"]
    assert chinese_pages.main(["docs/page.md"]) == 0 and changed("docs/page.md") == []


def test_nothing_is_recorded_for_a_page_that_lacks_something(folder, capsys) -> None:
    (folder / "zh" / "page.md").write_text(TRANSLATION.replace("2 字节", "4 字节"))
    assert chinese_pages.main(["docs/page.md"]) == 1
    assert "docs/page.md: section '标题' ('Title'), numbers" in capsys.readouterr().out
    assert changed("docs/page.md") == ["Title", "Run"]


def test_links_are_set_to_a_page_once_it_is_translated(folder) -> None:
    (folder / "zh" / "page.md").write_text(TRANSLATION.replace("a.md#更多", "../a.md#more"))
    assert chinese_pages.main(["docs/page.md"]) == 0
    assert (folder / "zh" / "page.md").read_text() == TRANSLATION


def test_code_and_figures_are_taken_from_the_english_page(folder) -> None:
    (folder / "page.md").write_text(ENGLISH.replace("train.py", "other.py").replace("16,600", "17,200"))
    assert len(list(differences(folder / "page.md"))) == 2
    assert chinese_pages.main(["docs/page.md"]) == 0
    text = (folder / "zh" / "page.md").read_text()
    assert "msdump run other.py  # as it is" in text and "| `--steps` | 17,200 |" in text and "| 选项 | 行数 |" in text


def test_a_translated_block_keeps_its_lines_and_numbers(folder) -> None:
    tree = "```text\nout/0    the first step\n```\n"
    (folder / "page.md").write_text(ENGLISH + tree)
    mine = TRANSLATION + "<!-- translated -->\n" + tree.replace("the first step", "第一步")
    assert list(differences(folder / "page.md", mine)) == []
    assert "lines of code" in next(differences(folder / "page.md", mine.replace("out/0", "out/1")))
    assert "lines of code" in next(differences(folder / "page.md", mine.replace("<!-- translated -->\n", "")))
