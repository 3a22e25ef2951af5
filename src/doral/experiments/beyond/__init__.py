"""Beyond the paper: every policy on every scenario, what each ingredient of `doral-otf` is worth, and why its settings
are what they are: `doral experiment compare`."""
