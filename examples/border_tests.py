"""Which travellers to test at a border, when an outbreak is somewhere and its place is unknown.

Who has this problem: a border with fewer tests than travellers, as in Greece in the summer of 2020.
What is decided: for every traveller, test or let pass.
What comes late: the result, one to four days later; meanwhile thousands more have arrived from the same places.
"""

import sys

import matplotlib.pyplot as plt
import polars as pl

import doral

PER_DAY = 500  # travellers
DAYS = 40

prevalence = {"A": 0.002, "B": 0.004, "C": 0.006, "D": 0.008, "E": 0.012, "F": 0.02, "G": 0.04, "H": 0.06}
share = {"A": 0.22, "B": 0.18, "C": 0.15, "D": 0.13, "E": 0.12, "F": 0.10, "G": 0.06, "H": 0.04}  # of all travellers
problem = doral.Problem(
    arms=[doral.Arm("test")],  # costs 1: the budget is a number of tests
    contexts=share,
    budget=4_000,
    horizon=DAYS * PER_DAY,
    deadline=4 * PER_DAY,  # rounds: a result is of use within four days
)
scenario = doral.Scenario(
    name="border tests",
    problem=problem,
    means=[[rate] for rate in prevalence.values()],
    noise="bernoulli",
    delays=doral.delays.Lognormal(median=1.5 * PER_DAY, sigma=0.4),
)
policies = ["doral-otf", "eva", "random", "oracle"]
result = doral.simulate(policies, scenario, runs=20, keep_decisions=True)

print(f"Infected travellers found with {problem.budget:,.0f} tests, of {problem.horizon:,} who come (20 summers):")
print(f"{'':<12}{'found':>7}{'worst summer':>15}{'of the best possible':>23}")
for row in result.summary().filter(metric="within_deadline").iter_rows(named=True):
    worst = result.expected("border tests", row["policy"]).min()
    print(f"{row['policy']:<12}{row['expected_mean']:>7.0f}{worst:>15.0f}{row['expected_share']:>23.0%}")

arrivals = result.decisions().with_columns(tested=pl.col("arm").is_not_null())
tested = arrivals.group_by("policy", "context").agg(pl.col("tested").mean()).sort("context")  # as in the problem
figure, axes = plt.subplots(figsize=(7.2, 4.2), layout="constrained")
styles = [("#0072B2", "o-"), ("#E69F00", "s--"), ("#999999", "^-."), ("#000000", "D:")]
for policy, (colour, style) in zip(policies, styles, strict=True):
    axes.plot(100 * tested.filter(policy=policy)["tested"], style, color=colour, linewidth=1.7, label=policy)
axes.set_xticks(range(len(share)), [f"{name}\n{rate:.1%}" for name, rate in prevalence.items()])
axes.set(xlabel="country of departure, and how many of its travellers are infected", ylabel="% of travellers tested")
axes.set_title("where the tests go, on average over 20 summers", loc="left", fontsize="medium")
axes.legend(frameon=False, loc="upper left")
axes.spines[["top", "right"]].set_visible(False)
figure.savefig(sys.argv[1] if len(sys.argv) > 1 else "border_tests.png", dpi=100)
