"""The engine: the dependency map, its transitions and its queries.

Pure: no clock, no chance, no I/O.
"""
