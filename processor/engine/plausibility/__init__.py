"""The plausibility model M: what is possible, what is known, what is believed, and by whom."""
