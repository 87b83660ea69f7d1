"""Streams hand callbacks to threads."""

from __future__ import annotations

import threading

import pytest

from msdump.frontends.acl.streams import PendingCallback, Stream, Subscriptions


@pytest.mark.parametrize("is_there", [True, False], ids=["waits", "leaves before"])
def test_a_callback_waits_for_its_thread_unless_that_has_left(is_there: bool) -> None:
    subscriptions, stream = Subscriptions(), Stream()
    subscriptions.add(1, stream)
    reports = subscriptions.reports_of(stream)
    if not is_there:
        subscriptions.remove(1, stream)
    callback = PendingCallback(print, None, threading.Event())
    subscriptions.deliver(callback, reports)
    assert callback.done.is_set() is not is_there
    assert reports.empty() is not is_there
