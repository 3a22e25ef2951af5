"""The state of a campaign: what its log adds up to."""
