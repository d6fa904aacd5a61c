"""Tests of the project itself: layers, style, dependencies, generated files."""
