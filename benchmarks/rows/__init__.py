"""The rows, grouped by what they measure. A module imports what its rows need inside of them: `--list` is quick."""
