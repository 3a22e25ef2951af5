"""Plain numerics as kernels: random bits, normal quantiles, approximate logarithms and exponentials, sums over rows."""
