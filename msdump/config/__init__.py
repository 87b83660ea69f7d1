"""What the user asked for: JSON text and environment variables -> DumpPlan. No arrays, no threads."""
