"""Engines: from a plan to the observers and writers that carry it out."""

from msdump.engines.mindspore import Engine, start_engine

__all__ = ["Engine", "start_engine"]
