"""A live campaign as a page: what is known of it, as plain facts, and how that is shown."""
