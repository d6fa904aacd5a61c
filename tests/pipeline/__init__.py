"""The pipeline on a broker."""
