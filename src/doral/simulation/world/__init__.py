"""What happens in a run: draws, answers, payments, and the players on them."""
