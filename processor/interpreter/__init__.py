"""The Interpreter: from utterances to typed operations."""
