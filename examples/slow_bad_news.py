"""Good news comes fast, bad news slowly: do not believe the first answers.

Who has this problem: teams that send out offers that are accepted at once and declined late, or never openly.
What is decided: which of two offers a customer gets.
What comes late: the "no". A "yes" takes two days, a "no" ten; early on, every offer looks like a success.
"""

import sys

import matplotlib.pyplot as plt
import numpy as np

import doral

PER_DAY = 40  # customers; a round is one of them
DAYS, DEADLINE_DAYS, RUNS = 60, 20, 20
yes = {"discount": 0.30, "extra service": 0.45}  # chance that an offer is accepted
slow_no = doral.delays.ByOutcome(
    above=doral.delays.Exponential(mean=2 * PER_DAY),  # rounds: two days
    below=doral.delays.Exponential(mean=10 * PER_DAY),
)
problem = doral.Problem(
    arms=[doral.Arm(name) for name in yes],
    contexts=["customer"],
    budget=1_200,  # offers: for half of all who come
    horizon=DAYS * PER_DAY,
    deadline=DEADLINE_DAYS * PER_DAY,
)
scenario = doral.Scenario(
    name="offers", problem=problem, means=[list(yes.values())], shares=[1.0], noise="bernoulli", delays=slow_no
)
split = doral.policy("doral-otf", outcome_split=0.5, label="curves by outcome")
result = doral.simulate(["doral-otf", split, "a/b", "random"], scenario, runs=RUNS, keep_decisions=True)

print(f"Accepted offers of {problem.budget:,.0f} (mean of {RUNS} runs):")
for row in result.summary().filter(metric="within_deadline").iter_rows(named=True):
    print(f"  {row['policy']:<18} {row['expected_mean']:>4.0f}, {row['expected_share']:.0%} of the best possible")

log = result.decisions().filter(policy="random")
figure, axes = plt.subplots(figsize=(7.2, 4.0), layout="constrained")
waits = np.arange(1, DEADLINE_DAYS + 1)
print('Share of "yes" among the answers that are there, by days after the offer:')
for (name, chance), colour, dash in zip(yes.items(), ["#0072B2", "#D55E00"], ["-", "--"], strict=True):
    sent = log.filter(arm=name)
    delay, reward = sent["delay"].to_numpy() / PER_DAY, sent["reward"].to_numpy()
    naive = [100 * reward[delay <= wait].mean() for wait in waits]
    print(f"  {name:<14}" + ", ".join(f"day {wait} {naive[wait - 1]:.0f}%" for wait in (1, 3, 7, 14, 20)))
    axes.plot(waits, naive, color=colour, linestyle=dash, linewidth=2, label=name)
    axes.axhline(100 * chance, color=colour, linewidth=1, linestyle=":")
    axes.text(19.8, 100 * chance - 1, f"truth: {chance:.0%}", color=colour, ha="right", va="top")
axes.set(xlabel="days after the offer", ylabel='% "yes" among the answers so far', xlim=(1, 20), ylim=(0, 100))
axes.set_xticks([1, 5, 10, 15, 20])
axes.legend(frameon=False, loc="upper right")
axes.spines[["top", "right"]].set_visible(False)
figure.savefig(sys.argv[1] if len(sys.argv) > 1 else "slow_bad_news.png", dpi=100)
