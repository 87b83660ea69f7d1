"""Questions of an agent about dumps, by the Model Context Protocol: answered by the commands that people type."""
