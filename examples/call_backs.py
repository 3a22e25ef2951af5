"""Whom to call back, when many would have come anyway.

Who has this problem: a clinic that calls people who are due for a check-up; the same with lapsed customers.
What is decided: who gets a call, who gets a text message, and who is left alone. That last group is the control.
What comes late: whether the patient comes. It takes weeks, and it happens without a call, too.
"""

import sys

import matplotlib.pyplot as plt
import numpy as np

import doral

PER_DAY = 80  # people who fall due
DAYS = 150
DEADLINE_DAYS = 30

people = {"loyal": 0.35, "busy": 0.40, "hard to reach": 0.25}
comes_anyway = [0.60, 0.15, 0.05]  # chance to come within their own time, if nothing is done
comes = [[0.60, 0.62], [0.25, 0.45], [0.07, 0.25]]  # the same after a text message, after a call
problem = doral.Problem(
    arms=[doral.Arm("text", cost=1), doral.Arm("call", cost=4)],
    contexts=people,
    budget=12_000,  # dollars
    horizon=DAYS * PER_DAY,
    deadline=DEADLINE_DAYS * PER_DAY,  # rounds: who comes within 30 days counts
    baseline="observed",  # it is seen who comes without being asked: what counts is what an arm adds to that
)
scenario = doral.Scenario(
    name="call-backs",
    problem=problem,
    means=comes,
    baseline_means=comes_anyway,
    noise="bernoulli",
    delays=doral.delays.Lognormal(median=9 * PER_DAY, sigma=0.6),
)
call_all = doral.rival("status-quo", shares=(0, 1, 0))  # what is often done: call all while there is money
result = doral.simulate(["doral-otf", call_all, "random", "oracle"], scenario, runs=5, keep_decisions=True)

table = result.summary().filter(metric="within_deadline")
print(f"Visits that would not have happened, for ${problem.budget:,.0f} (mean of 5 campaigns):")
for row in table.iter_rows(named=True):
    name = "call all" if "status-quo" in row["policy"] else row["policy"]
    print(f"  {name:<15} {row['expected_mean']:>6,.0f}   {row['expected_share']:>4.0%} of the best possible")

log = result.decisions().filter(policy="doral-otf")
share = {}  # of a group that got this
for name in people:
    group = log.filter(context=name)
    for arm in ("text", "call"):
        share[name, arm] = group.filter(arm=arm).height / group.height
    share[name, "left alone"] = 1 - share[name, "text"] - share[name, "call"]
print("doral-otf:")
names = ["left alone", "text", "call"]
for name in people:
    print(f"  {name:<14}", ", ".join(f"{given} {share[name, given]:>4.0%}" for given in names))

figure, axes = plt.subplots(figsize=(7.2, 4.4), layout="constrained")
for row, name in enumerate(people):
    rates = 100 * np.array([comes_anyway[row], *comes[row]])
    for place, (rate, colour) in enumerate(zip(rates, ["#999999", "#0072B2", "#D55E00"], strict=True)):
        y = 4 * row + place
        axes.barh(y, rates[0], color="#cccccc", height=0.8)
        axes.barh(y, rate - rates[0], left=rates[0], color=colour, height=0.8)
        axes.text(rate + 1, y, f"{names[place]}: {share[name, names[place]]:.0%} of them", va="center")
axes.set_yticks([1, 5, 9], people)
axes.invert_yaxis()
axes.set(xlabel="% who come within their time (grey: they would have come anyway)", xlim=(0, 85))
axes.set_title("what a contact adds (colour), and who got it from doral-otf", loc="left", fontsize="medium")
axes.spines[["top", "right"]].set_visible(False)
figure.savefig(sys.argv[1] if len(sys.argv) > 1 else "call_backs.png", dpi=100)
