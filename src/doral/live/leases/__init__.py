"""Several processes on one hot campaign: each decides out of a part of the budget that it has leased."""
