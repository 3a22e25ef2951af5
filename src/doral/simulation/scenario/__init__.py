"""Scenarios: rewards, delays, people and arrivals, and their files."""
