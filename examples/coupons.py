"""Coupons that cost only when they are redeemed, weeks after they were sent.

Who has this problem: a shop with a fixed budget for discounts.
What is decided: which coupon a visitor gets, or none.
What comes late: whether it is redeemed, and so what it costs. A "no" is never reported: silence is all there is.
"""

import sys

import matplotlib.pyplot as plt
import numpy as np
import polars as pl

import doral

PER_DAY = 100  # visitors; a round is one of them
DAYS = 120
WEEKS_VALID = 3

problem = doral.Problem(
    arms=[doral.Arm("$5 off", cost=5), doral.Arm("$10 off", cost=10), doral.Arm("$20 off", cost=20)],
    contexts={"new": 0.5, "returning": 0.3, "lapsed": 0.2},
    budget=6_000,  # dollars that may be paid
    horizon=DAYS * PER_DAY,
    deadline=7 * WEEKS_VALID * PER_DAY,  # rounds: a coupon is valid for three weeks
    paid="on_answer",  # nothing is paid for a coupon that is not redeemed
    reserve=0.999,  # keep back what open coupons will cost in 999 of 1,000 cases, and not the value of all of them
    feedback="silent",
)
scenario = doral.Scenario(
    name="coupons",
    problem=problem,
    means=[[0.03, 0.05, 0.07], [0.06, 0.08, 0.09], [0.01, 0.06, 0.18]],  # chance that a coupon brings a purchase
    noise="bernoulli",
    delays=doral.delays.Geometric(mean=8 * PER_DAY),  # 8 days on average
    paid="on_success",
)
policies = [
    "doral-otf",
    doral.policy("doral-otf", cost="list", label="as if all were redeemed"),
    "random",
]
result = doral.simulate(policies, scenario, runs=5, keep_decisions=True)

print(f"Purchases with a coupon, for at most ${problem.budget:,.0f} (mean of 5 campaigns of {DAYS} days):")
print(f"{'':<26}{'purchases':>10}{'paid':>9}{'of the best possible':>22}")
table = result.summary().filter(metric="within_deadline")
for row in table.iter_rows(named=True):
    paid = f"${result.runs().filter(policy=row['policy'])['spend'].mean():,.0f}"
    print(f"{row['policy']:<26}{row['reward_mean']:>10,.0f}{paid:>9}{row['expected_share']:>22.0%}")

prices = {arm.name: arm.cost for arm in problem.arms}
days = np.arange(DAYS + 1)
figure, axes = plt.subplots(figsize=(7.2, 4.2), layout="constrained")
for policy, colour, dash in zip(result.policies, ["#0072B2", "#D55E00", "#999999"], ["-", "--", "-."], strict=True):
    redeemed = result.decisions().filter(pl.col("delay") <= problem.deadline, policy=policy, reward=1)
    paid_on = (redeemed["round"] + redeemed["delay"]).to_numpy() / PER_DAY
    amounts = redeemed["arm"].replace_strict(prices).to_numpy()
    by_day = [amounts[paid_on <= day].sum() / 5 for day in days]
    axes.plot(days, by_day, color=colour, linestyle=dash, linewidth=2, label=f"paid: {policy}")
axes.plot([0, DAYS], [0, problem.budget], color="black", linewidth=1, label="the budget, spread evenly")
axes.set(xlabel="day of the campaign", ylabel="dollars paid for redeemed coupons", xlim=(0, DAYS), ylim=(0, None))
axes.yaxis.set_major_formatter("{x:,.0f}")
axes.legend(frameon=False, loc="upper left")
axes.spines[["top", "right"]].set_visible(False)
figure.savefig(sys.argv[1] if len(sys.argv) > 1 else "coupons.png", dpi=100)
