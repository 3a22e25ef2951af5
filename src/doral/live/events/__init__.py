"""Events of a log: a dataclass for each kind, the rows that they are stored as, and the checksums of these."""
