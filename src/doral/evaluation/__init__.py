"""What other policies would have brought, from a log of what was done: off-policy evaluation."""
