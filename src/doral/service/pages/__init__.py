"""The pages of the service: all campaigns at a glance, one live page each, and forms."""
