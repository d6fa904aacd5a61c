"""The contracts: everything that crosses a process boundary, as frozen pydantic models."""
