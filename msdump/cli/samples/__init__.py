"""Training scripts that `msdump demo` and the tests run; each is the file of that name in sample_code, not a copy."""
