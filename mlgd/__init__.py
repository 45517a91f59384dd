"""Multilevel gradient descent, as a small module."""
