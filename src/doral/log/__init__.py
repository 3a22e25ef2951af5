"""Logs of what happened, from anywhere: read, checked, and put into the order in which things happened."""
