"""The file of a compiled function: what is read is what was written; anything else is a FormatError."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from msdump.errors import FormatError
from msdump.torchair.inference.cache_file import CompiledModule, load, save

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
lists = st.lists(texts, max_size=3).map(tuple)
modules = st.builds(CompiledModule, texts, texts, texts, texts, lists, lists, texts)
in_a_folder = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


@in_a_folder
@given(modules)
def test_what_is_read_is_what_was_written(tmp_path: Path, module: CompiledModule) -> None:
    save(tmp_path / "file", module)
    assert load(tmp_path / "file") == module
    assert not module.difference(load(tmp_path / "file"))


@in_a_folder
@given(modules, st.integers(0), st.binary(max_size=3))
def test_a_damaged_file_is_read_or_refused(tmp_path: Path, module: CompiledModule, place: int, other: bytes) -> None:
    save(tmp_path / "file", module)
    data = (tmp_path / "file").read_bytes()
    place %= len(data)
    for damaged in (data[:place], data[:place] + other + data[place + 1 :]):
        (tmp_path / "damaged").write_bytes(damaged)
        try:
            module = load(tmp_path / "damaged")
        except FormatError:
            continue
        assert isinstance(module, CompiledModule)


@pytest.mark.parametrize(
    "content",
    [
        b"[" * 100_000,
        b'{"name": 1}',
        b"null",
        b'{"name":"","date":"","version":"","torch":"","inputs":"","options":[],"code":""}',
        b'{"name":"\\ud800","date":"","version":"","torch":"","inputs":[],"options":[],"code":""}',
        b'{"name":["a"],"date":"","version":"","torch":"","inputs":[],"options":[],"code":""}',
    ],
)
def test_content_that_is_no_cache(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(content)
    with pytest.raises(FormatError, match="Remove the file"):
        load(tmp_path / "file")


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "file")
    with pytest.raises(FormatError, match="a pipe"):
        load(tmp_path / "file")


@given(modules, modules)
def test_differences_name_a_field(one: CompiledModule, other: CompiledModule) -> None:
    name = one.difference(other)
    assert bool(name) == bool(other.difference(one))
    if name:
        assert name != "date" and getattr(one, name) != getattr(other, name)
