"""A campaign at work: people come, it decides, answers arrive days later, and the money never runs over.

Who has this problem: teams that run such a programme, today from a spreadsheet.
What is decided: which outreach a person gets when they register, at once, and stored before it is announced.
What comes late: whether they came. Answers are entered as they come in; after 14 days they no longer count.

Here 60 days are played in a second: `at` says when things happened. A live system leaves it out, and it is now.
"""

import heapq
import sys
from datetime import UTC, datetime, timedelta

import matplotlib.pyplot as plt
import numpy as np

import doral

START, DAYS, PER_DAY = datetime(2025, 3, 3, 9, tzinfo=UTC), 60, 20
day_s = 86_400  # seconds: a campaign's clock counts them

problem = doral.Problem(
    arms=[doral.Arm("letter", cost=1), doral.Arm("call", cost=3), doral.Arm("visit", cost=12)],
    contexts=["town", "village"],  # how many come of each is learned
    budget=1_500,  # dollars
    horizon=DAYS * PER_DAY,
    deadline=14 * day_s,
    reward_range=(0, 1),
)
store = doral.open("memory://")  # "sqlite:///outreach.db" keeps it on the disk
campaign = store.create("outreach", problem, seed=1, at=START)

# What is unknown in real life: who comes after what, and when. It stands in for the world.
world = np.random.default_rng(7)
comes = {
    "town": {"letter": 0.15, "call": 0.35, "visit": 0.40},
    "village": {"letter": 0.05, "call": 0.15, "visit": 0.70},
}
waits_days = {"letter": 6, "call": 2, "visit": 3}  # on average

under_way: list[tuple[datetime, str, int]] = []  # answers that will come: when, to which decision, yes or no
days, spent, reserved, answers = [], [], [], 0
for day in range(DAYS):
    for person in range(PER_DAY):
        now = START + timedelta(days=day, minutes=24 * person)
        while under_way and under_way[0][0] <= now:
            when, decision_id, came = heapq.heappop(under_way)
            campaign.feedback(decision_id, reward=came, at=when)
            answers += 1
        context = str(world.choice(["town", "village"], p=[0.6, 0.4]))
        decision = campaign.decide(context, key=f"registration-{day}-{person}", at=now)
        if decision.arm is not None and world.random() < 0.9:  # one in ten is never heard of again
            wait = timedelta(days=float(world.exponential(waits_days[decision.arm])))
            came = int(world.random() < comes[context][decision.arm])
            heapq.heappush(under_way, (now + wait, decision.id, came))
    campaign.expire(now=now)  # every night: what is older than 14 days no longer waits
    ledger = campaign.ledger()
    days.append(day + 1)
    spent.append(float(ledger.spent))
    reserved.append(float(ledger.reserved))

report = campaign.report()
print(f"{report.arrivals:,} people registered, {answers:,} answers came, {report.reward:.0f} came in time.")
print(f"Of ${problem.budget:,.0f}: ${spent[-1]:,.0f} spent, ${reserved[-1]:,.0f} reserved for what is open.")
for arm in report.arms:
    town, village = arm.view.values
    thought = f"thought to bring {town:.2f} in town, {village:.2f} in a village"
    print(f"  {arm.name:<7}{arm.plays:>4} times,{arm.reward:>4.0f} came; {thought}")
print("Checked against its log:", campaign.verify().n_differences, "differences.")

figure, axes = plt.subplots(figsize=(7.2, 4.2), layout="constrained")
names = ["spent: answered, or too old", "reserved: still open"]
axes.stackplot(days, spent, reserved, colors=["#0072B2", "#9ecae1"], labels=names)
axes.plot([0, DAYS], [0, problem.budget], color="black", linewidth=1.5, label="the budget, spread evenly")
axes.set(xlabel="day", ylabel="dollars", xlim=(0, DAYS), ylim=(0, None))
axes.yaxis.set_major_formatter("{x:,.0f}")
axes.legend(frameon=False, loc="upper left")
axes.spines[["top", "right"]].set_visible(False)
figure.savefig(sys.argv[1] if len(sys.argv) > 1 else "live_campaign.png", dpi=100)
