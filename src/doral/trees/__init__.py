"""Trees of arrays that compiled code reads by pointer: layouts, blocks at fixed addresses, and templates of blocks."""
