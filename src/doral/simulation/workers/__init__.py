"""Who computes: this process, several here, or a cluster. What comes out is the same to the bit."""
