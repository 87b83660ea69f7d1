"""Overview of a dump: contents, health of each tensor, findings."""
