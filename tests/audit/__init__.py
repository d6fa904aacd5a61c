"""The audit finds whatever was changed in a store, and nothing else."""
