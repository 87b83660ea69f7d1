"""AclConfigError: a refused acl.json with the two numbers that ACL gives for it, the aclError and the EP code.

ConfigError
+- AclConfigError
"""

from __future__ import annotations

from typing import Any

from msdump.config.json_file import shown
from msdump.errors import ConfigError

INVALID_PARAM = 100000
INVALID_FILE = 100003
PARSE_FILE = 100006
INVALID_DUMP_CONFIG = 100009

CONTENT, CHOICE, VALUE, SYNTAX, CONFLICT, NULL = "EP0001", "EP0002", "EP0003", "EP0004", "EP0005", "EP0007"


class AclConfigError(ConfigError):
    """A configuration that ACL refuses.

    acl_error  what `aclInit` and `aclmdlSetDump` return for it
    ep_code    of the line that they log
    item       path of the configuration item, such as dump_list[0].layer[1]; "" when it is the whole file
    """

    def __init__(
        self, message: str, acl_error: int = INVALID_DUMP_CONFIG, ep_code: str = CONTENT, item: str = ""
    ) -> None:
        super().__init__(message)
        self.acl_error = acl_error
        self.ep_code = ep_code
        self.item = item

    def with_line(self, line: str) -> AclConfigError:
        """The same refusal with one line more."""
        return AclConfigError(_printable(f"{self}\n{line}"), self.acl_error, self.ep_code, self.item)


def item_refusal(ep_code: str, item: str, reason: str, expected: str, value: Any, fix: str = "") -> AclConfigError:
    """Error for one item: the code with its reason, then where, what came and how to fix it."""
    text = f"{ep_code}: {item}: {reason}\n{item}: expected {expected}, got {shown(value)}. {fix}"
    return AclConfigError(_printable(text.rstrip()), INVALID_DUMP_CONFIG, ep_code, item)


def missing_item(item: str, expected: str, fix: str = "") -> AclConfigError:
    """Error for an item that must be there."""
    text = f"{CONTENT}: {item}: the item is not found\n{item}: expected {expected}, got no such key. {fix}"
    return AclConfigError(text.rstrip(), INVALID_DUMP_CONFIG, CONTENT, item)


def conflict(reason: str, item: str, expected: str, value: Any, fix: str) -> AclConfigError:
    """Error for an item that cannot stand beside another one."""
    text = f"{CONFLICT}: {reason}\n{item}: expected {expected}, got {shown(value)}. {fix}"
    return AclConfigError(_printable(text), INVALID_DUMP_CONFIG, CONFLICT, item)


def file_refusal(acl_error: int, path: object, reason: str, expected: str, got: str, fix: str = "") -> AclConfigError:
    """Error for the file itself."""
    text = f"{SYNTAX}: {path}: {reason}\n{path}: expected {expected}, got {got}. {fix}"
    return AclConfigError(_printable(text.rstrip()), acl_error, SYNTAX)


def _printable(text: str) -> str:
    """Paths of the system need not be UTF-8; messages are."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")
