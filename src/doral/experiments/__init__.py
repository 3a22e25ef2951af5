"""The paper's experiments: what is run (data), the runs, what they say, and how it is shown. Each in its own module."""
