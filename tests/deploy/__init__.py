"""Tests of what goes into production: image, compose file, rules, dashboards, chart."""
