"""The paper's comparison, sweeps over what the paper leaves open, an ablation: `doral experiment reproduce`."""
