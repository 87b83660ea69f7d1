"""Names of pyACL: the page says which work, and every other one says what to do."""

from __future__ import annotations

import pytest

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

from msdump.frontends import acl
from tests.acl_coverage import PAGE, find, module_of, names, page

# Names that public samples use.
USED = """
    acl.app_log acl.set_tensor_const acl.float16_to_float acl.float_to_float16 acl.set_tensor_storage_format
    acl.rt.subscribe_report acl.rt.process_report acl.rt.launch_callback acl.rt.unsubscribe_report
    acl.util.start_thread acl.util.stop_thread acl.mdl.get_dynamic_batch acl.mdl.get_dynamic_hw
    acl.rt.get_task_id_from_exception_info acl.mdl.create_config_handle acl.mdl.set_config_opt acl.mdl.load_with_config
    acl.mdl.get_desc_from_file acl.mdl.get_input_dims_range acl.mdl.get_input_dynamic_dims acl.mdl.set_aipp_csc_params
    acl.op.compile_and_execute_v2 acl.op.infer_shape acl.media.dvpp_malloc
    acl.media.dvpp_png_decode_async acl.media.dvpp_vpc_crop_async acl.media.dvpp_create_roi_config
"""


def test_the_page_is_the_one_of_these_modules() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run python -m tests.acl_coverage"


def test_every_call_is_a_name_of_pyacl() -> None:
    """What is not, belongs to the short interface, or is a helper."""
    own = {"acl": {"dump", "load", "Dump", "Model"}, "acl.util": {"get_ptr"}, "acl.rt": set()}
    for path, listed in names().items():
        public = getattr(module_of(path), "__all__", None) or [
            name
            for name, call in vars(module_of(path)).items()
            if name[0] != "_" and callable(call) and hasattr(call, "__wrapped__")
        ]
        modules = {"const", "mdl", "op", "rt", "util", "media"}
        assert set(public) - set(listed) - own.get(path, set()) - modules == set(), path


@pytest.mark.parametrize("name", USED.split())
def test_names_of_samples_work(name: str) -> None:
    path, _, call = name.rpartition(".")
    assert call in names()[path] and callable(find(path, call))


@pytest.mark.parametrize("path", ["acl", "acl.rt", "acl.mdl", "acl.op", "acl.util", "acl.media"])
def test_a_name_that_does_not_work_says_what_to_do(path: str) -> None:
    lacking = [name for name in names()[path] if find(path, name) is None]
    for name in (*lacking, "no_such_name"):
        with pytest.raises(AttributeError, match=r"acl.*expected .*(acl-coverage\.md|Pillow)"):
            getattr(module_of(path), name)
    assert not hasattr(module_of(path), "__path_of_nothing__")


def test_a_typing_mistake_is_named() -> None:
    with pytest.raises(AttributeError, match=r'acl\.mdl\.get_dynamic_batc: .*Did you mean "get_dynamic_batch"'):
        _ = acl.mdl.get_dynamic_batc  # type: ignore[attr-defined]
