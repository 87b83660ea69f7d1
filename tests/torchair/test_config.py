"""The tree of switches: defaults, what each takes, and TorchAir's words when it does not. None of it needs torch."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import msdump.torchair as torchair
from msdump.errors import ConfigError
from msdump.torchair.options import Option, dictionary

DEFAULTS = {
    "mode": "max-autotune",
    "debug.data_dump.type": None,
    "debug.graph_dump.type": None,
    "debug.fx_summary.type": None,
    "debug.fx_summary.skip_compile": "1",
    "debug.run_eagerly": "0",
    "debug.deadlock_check": "0",
    "debug.aclgraph.clone_input": "1",
    "debug.aclgraph.static_capture_size_limit": "64",
    "dump_config.enable_dump": "0",
    "dump_config.dump_mode": "all",
    "dump_config.dump_path": "./",
    "dump_config.dump_step": "",
    "dump_config.dump_layer": "",
    "dump_config.dump_data": "tensor",
    "dump_config.dump_config_path": None,
    "dump_config.data_dump_stage": "optimized",
    "experimental_config.keep_inference_input_mutations": "1",
    "experimental_config.static_model_ops_lower_limit": None,
    "experimental_config.jit_compile": "auto",
    "experimental_config.topology_sorting_strategy": "DFS",
    "experimental_config.enable_view_optimize": "1",
    "ge_config.oo_level": "O3",
    "ge_config.oo_constant_folding": None,
    "ge_config.export_compile_stat": "2",
    "fusion_config.fusion_switch_file": None,
    "inference_config.dynamic_gears_merge_policy": "zip",
    "export.export_path_dir": "./",
    "aclgraph_config.use_custom_pool": None,
    "post_grad_custom_pre_pass": None,
}

REFUSED: list[tuple[str, Any, type[Exception], str]] = [
    (
        "debug.data_dump.type",
        "bin",
        ValueError,
        "Value 'bin' (type: <class 'str'>) not in optional list ['npy'] (type: <class 'str'>).",
    ),
    (
        "debug.data_dump.type",
        None,
        ValueError,
        "Value None (type: <class 'NoneType'>) not in optional list ['npy'] (type: <class 'str'>).",
    ),
    (
        "debug.run_eagerly",
        "1",
        ValueError,
        "Value '1' (type: <class 'str'>) not in optional list [True, False] (type: <class 'bool'>).",
    ),
    ("debug.data_dump.filter", "add", TypeError, "value must be Callable or None, got <class 'str'>"),
    ("debug.data_dump.path", 3, TypeError, "expected str, bytes or os.PathLike object, not int"),
    ("debug.data_dump.path", None, TypeError, "expected str, bytes or os.PathLike object, not NoneType"),
    (
        "debug.aclgraph.static_capture_size_limit",
        0,
        ValueError,
        "Please set value in [1, 9223372036854775807], 0 is out of range.",
    ),
    (
        "debug.aclgraph.static_capture_size_limit",
        1.5,
        ValueError,
        "Please set integer type, but got <class 'float'>",
    ),
    (
        "dump_config.dump_path",
        "no/such",
        FileNotFoundError,
        "Please set legal dir path, no/such is not found or is not a file directory!",
    ),
    (
        "dump_config.dump_path",
        None,
        FileNotFoundError,
        "Please set legal dir path, None is not found or is not a file directory!",
    ),
    ("dump_config.dump_config_path", "", ValueError, "File path cannot be empty!"),
    (
        "dump_config.dump_config_path",
        "no.json",
        FileNotFoundError,
        "Please set legal file path, no.json is not found or is not '.json' file!",
    ),
    (
        "fusion_config.fusion_switch_file",
        "no.cfg",
        FileNotFoundError,
        "Please set legal file path, no.cfg is not found or is not a file!",
    ),
    (
        "dump_config.dump_step",
        "0ad",
        ValueError,
        r"Please set legal regex value format match ^(((\d+)|(\d+-{0,1}\d+))\|{0,1})*$, 0ad is Illegal format, "
        "correct example:0|1|2-5|6.",
    ),
    ("post_grad_custom_pre_pass", 1, TypeError, "value must be Callable or None, got <class 'int'>"),
]


def owner_of(config: Any, path: str) -> tuple[Any, str]:
    *groups, name = path.split(".")
    for group in groups:
        config = getattr(config, group)
    return config, name


@pytest.mark.parametrize(("path", "value"), DEFAULTS.items())
def test_defaults(path: str, value: object) -> None:
    owner, name = owner_of(torchair.CompilerConfig(), path)
    assert getattr(owner, name).value == value


def test_paths_and_the_filter_read_as_what_they_hold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    data_dump = torchair.CompilerConfig().debug.data_dump
    assert (data_dump.path, data_dump.filter) == (".", None)
    data_dump.path = "below/../here"
    data_dump.filter = len
    assert (data_dump.path, data_dump.filter) == (str(tmp_path / "here"), len)


@pytest.mark.parametrize(("path", "value", "kind", "line"), REFUSED)
def test_wrong_values_are_refused_in_the_originals_words(path: str, value: Any, kind: Any, line: str) -> None:
    config = torchair.CompilerConfig()
    owner, name = owner_of(config, path)
    before = getattr(owner, name)
    with pytest.raises(kind) as caught:
        setattr(owner, name, value)
    assert isinstance(caught.value, ConfigError)
    first, second = str(caught.value).split("\n")
    assert first == line
    assert second.startswith(f"config.{path}: expected ")
    assert getattr(owner, name) == before


@pytest.mark.parametrize("path", [path for path in DEFAULTS if path != "debug.data_dump.type"])
def test_both_ways_to_set_an_option_are_the_same(path: str) -> None:
    first, second = torchair.CompilerConfig(), torchair.CompilerConfig()
    owner, name = owner_of(first, path)
    option = getattr(owner, name)
    value = option.optional[-1] if option.optional else option.raw
    setattr(owner, name, value) if value is not None else None
    other, name = owner_of(second, path)
    if value is not None:
        getattr(other, name).value = value
    assert getattr(other, name).value == option.value


def test_equal_counts_as_listed() -> None:
    config = torchair.CompilerConfig()
    config.debug.run_eagerly = 1
    assert config.debug.run_eagerly.value == "1"
    assert config.debug.run_eagerly


def test_unknown_names_are_refused() -> None:
    config = torchair.CompilerConfig()
    with pytest.raises(
        ValueError, match=r"(?s)^_DataDump has no option typ, all options \[.*\n.*Did you mean"
    ) as caught:
        config.debug.data_dump.typ = "npy"
    assert "config.debug.data_dump: expected one of these, got 'typ'. Did you mean \"type\"?" in str(caught.value)
    with pytest.raises(AttributeError, match=r'config\.debug.*Did you mean "data_dump"'):
        _ = config.debug.datadump
    with pytest.raises(ConfigError, match=r"config\.debug\.data_dump: expected one of its options to be set, got 7"):
        config.debug.data_dump = 7
    with pytest.raises(AttributeError, match=r'torchair: .*Did you mean "get_npu_backend"'):
        _ = torchair.get_npu_backends


def test_private_switches_of_the_aclgraph_are_kept() -> None:
    config = torchair.CompilerConfig()
    config.experimental_config.aclgraph._aclnn_static_shape_kernel = True
    assert config.experimental_config.aclgraph._aclnn_static_shape_kernel.value is True


STEPS = st.lists(st.from_regex(r"[0-9]{1,3}(-[0-9]{1,3})?", fullmatch=True)).map("|".join)


@given(STEPS, st.sampled_from(["", "a", " ", "||", "-", "|-"]))
def test_dump_step_takes_ranges_only(text: str, tail: str) -> None:
    config = torchair.CompilerConfig()
    config.dump_config.dump_step = text
    assert config.dump_config.dump_step.value == text
    if tail:
        with pytest.raises(ValueError, match="is Illegal format"):
            config.dump_config.dump_step = text + tail


@pytest.mark.parametrize("text", ["", "0", "12", "02|3|4", "0-1", "0|1|2-5|6", "1|", "5-1", "1-23-4", None])
def test_dump_step_accepted(text: str | None) -> None:
    config = torchair.CompilerConfig()
    config.dump_config.dump_step = text
    assert config.dump_config.dump_step.value == (text or "")


@pytest.mark.parametrize("text", ["0ad", "0|2&", "--", "1-", "-1", "02||||34", "1--6", "1 2", "|1", "1" * 4000 + "x"])
def test_dump_step_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is Illegal format"):
        torchair.CompilerConfig().dump_config.dump_step = text


@pytest.mark.parametrize(
    ("option", "good", "bad", "line"),
    [
        (Option(None, dictionary, is_raw=True), {"a": 1}, [], "value must be dict or None, got <class 'list'>"),
    ],
)
def test_other_kinds_of_options(option: Any, good: Any, bad: Any, line: str) -> None:
    option.value = good
    assert option.value == good
    with pytest.raises(TypeError) as caught:
        option.value = bad
    assert str(caught.value).split("\n")[0] == line
    option.value = None
    assert not option.value


def test_the_configuration_needs_no_torch_and_the_backend_says_so(tmp_path: Path) -> None:
    (tmp_path / "torch.py").write_text("raise ImportError('No module named torch')")
    code = "import msdump.torchair as t; c = t.CompilerConfig(); c.debug.data_dump.type = 'npy'; t.get_npu_backend()"
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(tmp_path)!r}); {code}"],
        capture_output=True,
        text=True,
    )
    last = done.stderr.strip().splitlines()[-1]
    assert "expected torch 2.5 or newer, got none" in last
    assert last.endswith("pip install torch")


def test_an_old_torch_is_refused(tmp_path: Path) -> None:
    (tmp_path / "torch.py").write_text("__version__ = '2.3.1+cpu'")
    code = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import msdump.torchair as t; t.get_npu_backend()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "expected torch 2.5 or newer, got 2.3.1+cpu. Install it: pip install" in done.stderr


def test_the_names_resolve_to_one_module() -> None:
    code = (
        "from msdump.frontends.aliases import install_aliases; install_aliases(('torchair',), prefer_real=False)\n"
        "import torchair, msdump.torchair, msdump, sys\n"
        "from torchair.configs.compiler_config import CompilerConfig\n"
        "assert torchair is msdump.torchair is sys.modules['msdump.torchair']\n"
        "assert CompilerConfig is torchair.CompilerConfig and 'torch' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"compiler_config": {"mode": "x"}}, "expected compiler_config to be a CompilerConfig or None, got dict"),
        ({"custom_decompositions": [1]}, "expected custom_decompositions to be a dict, got list"),
    ],
)
def test_arguments_of_another_type_are_refused(arguments: dict[str, Any], text: str) -> None:
    with pytest.raises(ConfigError, match=text):
        torchair.get_npu_backend(**arguments)


def test_options_without_effect_are_named_once() -> None:
    pytest.importorskip("torch")
    config = torchair.CompilerConfig()
    config.debug.aclgraph.remove_cat_ops = False
    config.debug.graph_dump.type = "py"
    config.debug.data_dump.filter = len
    config.experimental_config.frozen_parameter = True
    config.experimental_config.keep_inference_input_mutations = False
    with pytest.warns(UserWarning, match="have no effect in mode max-autotune") as caught:
        torchair.get_npu_backend(compiler_config=config)
    (warning,) = caught
    assert warning.filename == __file__
    text = str(warning.message)
    for name in (
        "config.debug.aclgraph.remove_cat_ops = False",
        "config.experimental_config.frozen_parameter = True",
        "config.debug.data_dump.filter",
    ):
        assert name in text
    assert "keep_inference" not in text and "graph_dump" not in text
    assert text.endswith("dumps once config.debug.data_dump.type is set to 'npy'.")


def test_the_old_capturing_mode_points_to_the_new_backend() -> None:
    pytest.importorskip("torch")
    config = torchair.CompilerConfig()
    config.mode = "reduce-overhead"
    with pytest.warns(DeprecationWarning, match="npugraph_ex") as caught:
        torchair.get_npu_backend(compiler_config=config)
    assert [warning.filename for warning in caught] == [__file__]
