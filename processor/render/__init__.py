"""The renderer: the engine's state in words and in JSON."""
