"""The interpreter: what it is told, what it reads, and what is compared without it."""
