"""Campaigns spread over the workers of one machine: each has a home, where its state is kept."""
