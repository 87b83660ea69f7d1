"""The flight recorder: the last steps in a ring of files, and on the disk when something happens."""
