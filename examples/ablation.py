"""What a policy is made of: take one part out at a time, and see what is lost.

Who has this problem: researchers, and maintainers who must justify each part.
What is decided: in two short scenarios of 5,000 arrivals, which arm to play at which cost, or none.
What comes late: answers. In "stress/short" they have heavy tails, and many miss the deadline; in
"stress/dear-is-right" the arms that cost most are the good ones.
"""

import sys

import matplotlib.pyplot as plt

import doral

scenarios = ["stress/short", "stress/dear-is-right"]
parts = {  # each changes a word or two of doral-otf
    "spend as it comes, no pacing": {"pacing": "greedy"},
    "race first, as in the paper": {"screening": "race"},
    "expect every answer to return": {"return_probability": "one", "cutoff": None},
    "Thompson sampling": {"sampling": "thompson", "exploration": 0.5},
    "open decisions do not count": {"pending": "ignored"},
    "each context for itself": {"prior": "noise"},
    "one return curve per arm": {"curves_by": "arm"},
    "planned first tries": {"start_share": 0.05},
}
policies = ["doral-otf", *(doral.policy("doral-otf", label=name, **words) for name, words in parts.items())]
result = doral.simulate(policies, scenarios, runs=20)
table = result.summary().filter(metric="within_deadline")

figure, axes = plt.subplots(figsize=(7.6, 4.4), layout="constrained")
for scenario, colour, marker, shift in zip(scenarios, ["#0072B2", "#D55E00"], "os", [-0.15, 0.15], strict=True):
    rows = {row["policy"]: row for row in table.filter(scenario=scenario).iter_rows(named=True)}
    whole = rows["doral-otf"]
    print(f"{scenario}: doral-otf earns {whole['expected_share']:.1%} of the best (20 runs). Changed:")
    for place, name in enumerate(parts):
        ends = (rows[name][f"expected_difference_{end}"] for end in ("mean", "low", "high"))
        mean, low, high = (100 * end / whole["oracle_mean"] for end in ends)
        verdict = "loses" if high < 0 else "gains" if low > 0 else "cannot tell"
        print(f"  {name:<30} {mean:+6.1f} points [{low:+.1f}, {high:+.1f}]  {verdict}")
        reach = [[mean - low], [high - mean]]
        label = scenario if place == 0 else None
        axes.errorbar(mean, place + shift, xerr=reach, fmt=marker, color=colour, capsize=3, label=label)
axes.axvline(0, color="black", linewidth=1)
axes.set_yticks(range(len(parts)), parts)
axes.invert_yaxis()
axes.set(xlabel="difference to doral-otf, in % of the best possible (95% intervals)")
axes.grid(axis="x", color="#dddddd", linewidth=0.6)
axes.legend(frameon=False, loc="lower left")
axes.spines[["top", "right"]].set_visible(False)
figure.savefig(sys.argv[1] if len(sys.argv) > 1 else "ablation.png", dpi=100)
