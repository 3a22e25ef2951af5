"""Models from outside: what they see of people, when they are fitted anew, and what they say of each arm."""
