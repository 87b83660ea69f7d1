"""Every performance number of msdump, measured by one command: `python -m benchmarks`."""
