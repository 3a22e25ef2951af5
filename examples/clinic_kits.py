"""Test kits for two groups of people, when only samples that are back within two weeks count.

Who has this problem: a health programme that hands out test kits in three ways.
What is decided: for each person who asks, which kit they get, or none (there is not money for all).
What comes late: the sample. Kits by post bring most samples in the end, but many of them after the deadline.
"""

import sys

import matplotlib.pyplot as plt
import numpy as np

import doral

PER_DAY = 60  # people who ask for a kit; a round of the simulation is one of them
DAYS = 100
DEADLINE_DAYS = 14

problem = doral.Problem(
    arms=[doral.Arm("by post", cost=5), doral.Arm("at the clinic", cost=6), doral.Arm("nurse visit", cost=15)],
    contexts={"elderly": 0.3, "adult": 0.7},
    budget=30_000,  # dollars
    horizon=DAYS * PER_DAY,
    deadline=DEADLINE_DAYS * PER_DAY,  # rounds
)
delays = {  # in rounds, too: 60 of them are a day
    "by post": doral.delays.Lognormal(median=15 * PER_DAY, sigma=0.8),
    "at the clinic": doral.delays.Lognormal(median=4 * PER_DAY, sigma=0.7),
    "nurse visit": doral.delays.Geometric(mean=2 * PER_DAY),
}
scenario = doral.Scenario(
    name="clinic kits",
    problem=problem,
    means=[[0.40, 0.20, 0.75], [0.50, 0.45, 0.50]],  # chance that a kit ends in a usable sample, sooner or later
    noise="bernoulli",
    delays=delays,
)
policies = ["doral-otf", "a/b", "random", "oracle"]
result = doral.simulate(policies, scenario, runs=10, keep_decisions=True)

table = result.summary().filter(metric="within_deadline")
decisions = result.decisions()
given = [[decisions.filter(policy=policy, arm=arm).height for arm in problem.arm_names] for policy in policies]
kits = np.array(given) / 10  # on average over the runs

print(f"Usable samples within {DEADLINE_DAYS} days, for ${problem.budget:,.0f} (mean of 10 campaigns):")
print(f"{'':<12}{'samples':>8}  {'of the best possible':>20}   kits: post / clinic / nurse")
for row, numbers in zip(table.iter_rows(named=True), kits, strict=True):
    parts = " / ".join(f"{number:,.0f}" for number in numbers)
    print(f"{row['policy']:<12}{row['reward_mean']:>8,.0f}  {row['expected_share']:>20.0%}   {parts}")

colours = ["#E69F00", "#0072B2", "#009E73"]
figure, (left, right) = plt.subplots(1, 2, figsize=(9.6, 3.6), layout="constrained")
days = np.linspace(0, 40, 161)
for (name, law), colour, dash in zip(delays.items(), colours, ["-", "--", "-."], strict=True):
    left.plot(days, 100 * law.return_probability(days * PER_DAY), color=colour, linestyle=dash, linewidth=2, label=name)
left.axvline(DEADLINE_DAYS, color="black", linewidth=1)
left.annotate("deadline", (DEADLINE_DAYS, 4), xytext=(4, 0), textcoords="offset points")
left.set(xlabel="days after the kit was handed out", ylabel="% of samples that are back", xlim=(0, 40), ylim=(0, 101))
left.legend(frameon=False, loc="lower right")
left.set_title("when samples come back", loc="left", fontsize="medium")

start = np.zeros(len(policies))
for arm, colour in enumerate(colours):
    right.barh(policies, kits[:, arm], left=start, color=colour, edgecolor="white", label=problem.arm_names[arm])
    start += kits[:, arm]
right.invert_yaxis()
right.set(xlabel="kits handed out, of 6,000 people who asked")
right.set_title("who gets what", loc="left", fontsize="medium")
for axes in (left, right):
    axes.spines[["top", "right"]].set_visible(False)
figure.savefig(sys.argv[1] if len(sys.argv) > 1 else "clinic_kits.png", dpi=100)
