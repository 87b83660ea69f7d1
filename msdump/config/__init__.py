"""What the user asked for: JSON text and environment variables -> Plan. No arrays, no threads."""
