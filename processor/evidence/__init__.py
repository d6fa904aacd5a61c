"""The evidence ledger: a second projection of the log, and the memories it is compared with."""
