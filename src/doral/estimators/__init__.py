"""Small compiled estimators: arrays in, arrays out, one file each."""
