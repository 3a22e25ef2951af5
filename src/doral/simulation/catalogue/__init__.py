"""Shipped scenarios by name."""
