"""Plain numerics: kernels of numbers, and elementary functions with the same last bit everywhere."""
