"""The HTTP server of a worker: the gate, read-only views, and how the worker is."""
