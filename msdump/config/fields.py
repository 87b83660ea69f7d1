"""Field types of the JSON sections: what a value's JSON type must be, refused in MindSpore's words.

A section is a pydantic model whose `title` is its JSON key. The order of its fields is the order of its checks.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, BeforeValidator, ValidationError, ValidationInfo

from msdump.config.json_file import shown
from msdump.errors import ConfigError, did_you_mean

Section = TypeVar("Section", bound=BaseModel)


def where(info: ValidationInfo) -> str:
    """JSON path of the field that is being checked."""
    return f"{(info.config or {}).get('title', '')}.{info.field_name}"


def refusal(first_line: str, info: ValidationInfo, expected: str, value: Any, fix: str = "") -> ConfigError:
    """Error for one field: MindSpore's line, then where, what came and how to fix it."""
    text = f"{first_line}\n{where(info)}: expected {expected}, got {shown(value)}. {fix}".rstrip()
    # pydantic keeps messages as UTF-8, which a path from the environment need not be.
    return ConfigError(text.encode("utf-8", "backslashreplace").decode("utf-8"))


def check_unsigned(value: Any, info: ValidationInfo) -> Any:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        # MindSpore reports both sampling keys under one name.
        name = "sample_mode" if info.field_name == "sample_num" else info.field_name
        fix = "Write the number without quotes." if isinstance(value, str) and value.isdigit() else ""
        first_line = f"Dump config parse failed, {name} should be unsigned int type"
        raise refusal(first_line, info, "a whole number from 0 on", value, fix)
    return value


def check_string(value: Any, info: ValidationInfo) -> Any:
    if not isinstance(value, str):
        first_line = f"Dump config parse failed, {info.field_name} should be string type"
        raise refusal(first_line, info, "a string", value, "Put it in double quotes.")
    return value


def check_array(value: Any, info: ValidationInfo) -> list[Any]:
    if not isinstance(value, list):
        first_line = f"Dump config parse failed, {info.field_name} should be array type"
        raise refusal(first_line, info, "a list", value, "Put it in square brackets.")
    return value


def _check_boolean(value: Any, info: ValidationInfo) -> Any:
    if not isinstance(value, bool):
        # The original names `enable` whichever switch is wrong.
        first_line = "Dump Json Parse Failed. 'enable' should be boolean type"
        raise refusal(first_line, info, "true or false", value, "Write it without quotes, in lower case.")
    return value


Unsigned = Annotated[int, BeforeValidator(check_unsigned)]
String = Annotated[str, BeforeValidator(check_string)]
Boolean = Annotated[bool, BeforeValidator(_check_boolean)]


def validate_section(model: type[Section], section: object, context: object) -> Section:
    """A section as its model.

    Edges:  anything but an object has no keys, so its first required key is missing.
    Raises: ConfigError: the first missing key in the order of the fields, else the first wrong value.
    """
    values: dict[str, Any] = dict(section) if isinstance(section, dict) else {}
    for key, field in model.model_fields.items():
        if key not in values:
            if field.is_required():
                raise missing_key(key, str(model.model_config.get("title")), section)
            if field.validate_default:
                # pydantic 2.4 forgets every problem but this one when it checks a default itself.
                values[key] = field.default
    try:
        return model.model_validate(values, context=context)
    except ValidationError as error:
        problems = error.errors(include_url=False)
    # Raised outside of `except`: pydantic's own account would only repeat this one in other words.
    raise problems[0]["ctx"]["error"]


def missing_key(key: str, where: str, section: object) -> ConfigError:
    """Error for a key that is not there, with the misspelt one when there is one."""
    if not isinstance(section, Mapping):
        fix = f"It is no object; write {{...}} with the key {key} in it."
    else:
        fix = did_you_mean(key, section) or "Add it."
        if fix != "Add it.":
            fix = f"{fix[:-1].replace('Did you mean', 'Is it meant by')}?"
    return ConfigError(f"Check dump json failed, {key} not found\n{where}: expected a key {key}. {fix}")


def unknown_keys(model: type[BaseModel], section: object) -> list[str]:
    """One sentence for each key of a section that nobody reads."""
    if not isinstance(section, dict):
        return []
    title, known = str(model.model_config.get("title")), list(model.model_fields)
    return [
        f"{title}.{key}: unknown key, ignored. {did_you_mean(key, known)}".rstrip()
        for key in section
        if key not in model.model_fields
    ]
