"""The HTTP server of a worker, over real connections, on conversations that need no broker."""
