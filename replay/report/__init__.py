"""The page of one conversation: its data, and the file that shows them."""
