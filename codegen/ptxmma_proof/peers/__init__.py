"""Comparisons with other projects, each from a checkout at a commit or from an installed package."""
