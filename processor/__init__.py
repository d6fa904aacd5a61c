"""The processor: the engine and everything that runs it."""
