"""What is one per process: dumps that are open, their reports, its end, a dry run, the user's cache."""
