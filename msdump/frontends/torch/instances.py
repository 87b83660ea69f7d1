"""All instances of a class in this process, also those that were made before the dump began."""

from __future__ import annotations

import gc
from typing import TypeVar

T = TypeVar("T")


def instances_of(kind: type[T]) -> list[T]:
    """Instances of a class and of those below it; some may still be under construction. It takes long.

    They are found by their classes, which instances refer to; other objects are not asked for their class, as proxies
    would run code.
    """
    classes = [kind]
    for each in classes:
        classes += [below for below in type.__subclasses__(each) if below not in classes]
    known = set(classes)
    return [found for found in gc.get_referrers(*classes) if type(found) in known]
