"""Generates all outputs from ``spec/``: load -> build -> rules -> derive -> emit -> write."""
