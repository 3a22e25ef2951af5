"""Models and policies from outside: their input, when they are fitted, and their predictions."""
