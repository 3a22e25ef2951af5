"""The paper's comparison, sweeps over what the paper leaves open, and an ablation of our reading: `doral reproduce`."""
