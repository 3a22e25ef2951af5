"""What can happen to a campaign, a chapter for each kind: the request, the events that follow, how they are applied."""
