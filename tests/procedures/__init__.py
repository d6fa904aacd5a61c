"""The procedures of deploy/README.md, carried out as they stand there."""
