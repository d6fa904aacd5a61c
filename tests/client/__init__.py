"""The client: its decisions without I/O, its two guards, its hooks, and how it is installed."""
