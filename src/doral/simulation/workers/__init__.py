"""Workers that compute runs: this process, several here, or a cluster. Results are the same to the bit."""
