"""Configurations: JSON text, options and environment variables -> Plan. No arrays, no threads."""
