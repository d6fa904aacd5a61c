"""The pages of conversations over HTTP: `standfast serve`, and `archive --serve`."""
