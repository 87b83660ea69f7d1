"""What the sub-commands of CANN's msaccucmp.py compute, in its columns and with its exit codes."""
