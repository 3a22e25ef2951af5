"""A made-up population that feeds a campaign, for people who want to see one move."""
