"""The archive of the topics, and what is done with dead letters."""
