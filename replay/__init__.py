"""The past: stored logs, snapshots, and questions about any turn."""
