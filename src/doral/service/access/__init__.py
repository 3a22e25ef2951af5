"""Who may do what: keys, roles, sessions, limits, and a note of every administrative act."""
