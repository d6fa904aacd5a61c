"""The evidence ledger: its update, its memory classes, and what it means for the map."""
