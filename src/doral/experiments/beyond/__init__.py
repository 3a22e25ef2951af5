"""Beyond the paper: every policy on every scenario, what each ingredient of `doral-otf` is worth, and why its settings
are what they are. What is run is data (`plan.py`, `ingredients.py`, `choices.py`); the rest says what came out."""
