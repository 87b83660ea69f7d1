"""Variables of the environment that a dump does not obey are said when it starts."""

from __future__ import annotations

import pytest

from msdump.config.environment import CONTAINER, UPLOAD
from msdump.dumpers.ignored import say_ignored
from msdump.errors import ConfigError

ALL = {CONTAINER: "pack", UPLOAD: "s3://bucket/job"}


def test_what_is_set_is_said(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    say_ignored("a dump", *ALL)
    monkeypatch.setenv(CONTAINER, "files")
    say_ignored("a dump", *ALL)
    assert not caplog.records
    for name, value in ALL.items():
        monkeypatch.setenv(name, value)
    say_ignored("a dump", UPLOAD)
    assert [record.getMessage() for record in caplog.records] == [
        "MSDUMP_UPLOAD has no effect on a dump: `msdump upload` sends its files."
    ]
    say_ignored("a dump", *ALL)
    assert len(caplog.records) == 3


@pytest.mark.parametrize(("name", "value"), [(CONTAINER, "zip"), (UPLOAD, "nonsense"), (UPLOAD, "nonsense://")])
def test_wrong_values_are_errors_for_every_dump(name: str, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(ConfigError, match=f"environment variable {name}: expected"):
        say_ignored("a dump")
