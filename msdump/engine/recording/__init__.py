"""The flight recorder: the last steps in a ring of files, written to the dump folder on a trigger."""
