"""What a scenario is: rewards, delays, people and arrivals, and its files."""
