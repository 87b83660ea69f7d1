"""Contracts: test classes that several implementations inherit; their assertions are rewritten as those of tests."""

import pytest

for _name in ("dumper_contract", "run_contract", "writer_contract"):
    pytest.register_assert_rewrite(f"{__name__}.{_name}")
