"""Models and policies from outside: what they see, when they are fitted anew, and what they say."""
