"""The pytest fixture `golden_dump`: what a model computes stays what it was, or the test names the first operator.

    def test_model(golden_dump):
        with msdump.watch(model, golden_dump.config()):
            model(torch.ones(2, 3))
        golden_dump.check()

`pytest --update-golden` keeps what the test dumps as the golden dump. docs/testing.md.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

_NO_NAME = re.compile(r"[^A-Za-z0-9_.-]+")
_OPTION = "--update-golden"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option."""
    text = "keep what tests with golden_dump dump as their golden dumps, in place of comparing"
    parser.getgroup("msdump").addoption(_OPTION, action="store_true", help=text)


class GoldenDump:
    """Where one test dumps, and what that is compared with.

    path      the dump of this run, in pytest's temporary folder
    golden    the one that is kept, beside the test: `golden/{module}/{test}`
    """

    def __init__(self, path: Path, golden: Path, is_update: bool, record: Callable[[str, object], None]) -> None:
        self.path = path
        self.golden = golden
        self._is_update = is_update
        self._record = record

    def config(self, **common: Any) -> dict[str, Any]:
        """Configuration of `msdump.dump`, `msdump.watch` and MINDSPORE_DUMP_CONFIG: every tensor of every iteration.

        common   keys of `common_dump_settings` that are to be others
        """
        settings = {
            "dump_mode": 0,
            "path": str(self.path),
            "net_name": "Net",
            "iteration": "all",
            "saved_data": "tensor",
            "input_output": 0,
            "kernels": [],
            "support_device": list(range(8)),
        }
        return {
            "common_dump_settings": {**settings, **common},
            "e2e_dump_settings": {"enable": True, "trans_flag": True},
        }

    def acl_config(self, **dump: Any) -> dict[str, Any]:
        """The same for ONNX models: of `msdump.acl` and `acl.mdl.set_dump`.   dump: keys that are to be others"""
        self.path.mkdir(mode=0o700, parents=True, exist_ok=True)  # ACL does not make it
        return {"dump": {"dump_path": str(self.path), "dump_list": [{}], "dump_mode": "all", **dump}}

    def check(self, *, has_tensors: bool = False, mapping: Any = None) -> None:
        """Compare with the golden dump; the test fails with the first operator that differs.

        has_tensors  with --update-golden, keep the tensors, which are compared element by element, and not only
                     their statistics, which are small enough for a repository
        mapping      as of `msdump.compare`
        The report of both is a file whose path the message has, and a property `msdump report` of JUnit's XML.
        """
        __tracebackhide__ = True
        from msdump.errors import MsdumpError

        # Behind the block, which does not end the test.
        for error in self._errors():
            pytest.fail(f"{self.path}: expected a whole dump, got: {error}", pytrace=False)
        try:
            if self._is_update:
                self._update(has_tensors)
                return
            if not self.golden.is_dir():
                pytest.fail(
                    f"{self.golden}: expected a golden dump, got none. Make it: pytest {_OPTION}", pytrace=False
                )
            problem = self._problem(mapping)
        except MsdumpError as error:
            pytest.fail(str(error), pytrace=False)
        if problem:
            pytest.fail(problem, pytrace=False)

    def _errors(self) -> list[str]:
        from msdump.process import sessions

        paths = [(Path(report.path), report.error) for report in sessions.reports() if report.error]
        return [error for path, error in paths if self.path in (path, *path.parents)]

    def _update(self, has_tensors: bool) -> None:
        from msdump.analysis.stat.statistics import write_statistic_files

        shutil.rmtree(self.golden, ignore_errors=True)
        if has_tensors:
            shutil.copytree(self.path, self.golden)
            return
        write_statistic_files(self.path, self.golden)

    def _problem(self, mapping: Any) -> str:
        from msdump.analysis.compare.judge import verdict_of
        from msdump.analysis.compare.sentences import headline
        from msdump.analysis.compare.verdict import Outcome
        from msdump.analysis.overview.contents import Contents, has_tensors
        from msdump.analysis.stat.statistics import write_statistic_files
        from msdump.analysis.steps import opened
        from msdump.viewing.report_file import write_report

        mine = self.path
        if not has_tensors(opened(self.golden)):
            mine = self.path.parent / "statistics"
            shutil.rmtree(mine, ignore_errors=True)
            write_statistic_files(self.path, mine)
        contents = Contents(mine, self.golden, mapping=mapping)
        comparison = contents.comparison
        assert comparison is not None  # there are two
        verdict = verdict_of(comparison)
        lines = headline(comparison, verdict) if verdict.outcome is Outcome.DIFFERS else []
        lines += [f"not in this run: {name}" for step in comparison.steps for name in _labels(step.only_golden)]
        lines += [f"not in the golden dump: {name}" for step in comparison.steps for name in _labels(step.only_mine)]
        lines += [f"not in this run: {key}" for key in comparison.only_golden]
        lines += [f"not in the golden dump: {key}" for key in comparison.only_mine]
        if not lines:
            return ""
        report = write_report(contents, self.path.parent / "report.html")
        self._record("msdump report", str(report.path))
        return "\n".join([*lines, f"report: {report.path}", f"If this is right: pytest {_OPTION}"])


def _labels(operators: Any) -> list[str]:
    return [operator.label for operator in operators]


@pytest.fixture
def golden_dump(
    request: pytest.FixtureRequest, tmp_path: Path, record_property: Callable[[str, object], None]
) -> GoldenDump:
    """Dump what the test computes and compare it with what is kept: see docs/testing.md."""
    test = Path(request.node.path)
    name = _NO_NAME.sub("_", request.node.name)[:100]
    golden = test.parent / "golden" / test.stem / name
    return GoldenDump(tmp_path / "dump", golden, request.config.getoption(_OPTION), record_property)
