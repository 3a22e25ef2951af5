"""What people see of a campaign: decisions, reports, health, files."""
