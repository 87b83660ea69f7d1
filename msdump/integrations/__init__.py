"""Dumps from inside of other programs: callbacks of training loops, and plug-ins of serving engines."""
