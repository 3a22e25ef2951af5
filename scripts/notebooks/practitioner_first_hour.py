"""The source of examples/practitioner_first_hour.ipynb: `make notebooks` runs it and writes that."""

# %% [markdown]
# # A practitioner's first hour
#
# You have a budget, people who come one after the other, a few things that you can do for each of them, and answers that
# come days later or never. In this notebook you describe such a problem, see what can be expected, read a log that you
# already have, and run a campaign: decide, enter answers, look, correct, top up. It runs in about two minutes.

# %%
from datetime import UTC, datetime, timedelta

import numpy as np
import polars as pl

import doral

# %% [markdown]
# ## Your problem
#
# A clinic reminds patients of a check-up: by letter, by phone, or by a visit. There is money for some of them only.
# An *arm* is what can be done, a *context* the kind of person, the *deadline* how old an answer may be to count. In a
# simulation it is in rounds (one is an arrival): 14 days at 50 people a day are 700.

# %%
per_day = 50
reminders = doral.Problem(
    arms=[doral.Arm("letter", cost=1), doral.Arm("call", cost=4), doral.Arm("visit", cost=15)],
    contexts={"young": 0.5, "adult": 0.3, "old": 0.2},
    budget=6_000,  # dollars
    horizon=80 * per_day,
    deadline=14 * per_day,
)
reminders

# %% [markdown]
# ## What could be expected?
#
# Nobody knows what the arms bring. Guess, and see what a policy would make of it; then guess differently. `random` is
# what happens without a policy, `a/b` a test of all arms and then the winner of each group.

# %%
guess = doral.Scenario(
    name="a guess",
    problem=reminders,
    means=[[0.10, 0.20, 0.25], [0.10, 0.30, 0.45], [0.05, 0.35, 0.80]],  # chance to come: a row per group
    noise="bernoulli",
    delays=doral.delays.Lognormal(median=4 * per_day, sigma=0.8),  # half of those who come do so within 4 days
)
expected = doral.simulate(["doral-otf", "a/b", "random"], guess, runs=10)
print(expected)
print(expected.difference("doral-otf", "a/b"))

# %%
expected.plot("reward")

# %% [markdown]
# `random` is ahead at first, because it spends all money in the first quarter. A round is one person; 50 of them are a day.
#
# ## The log that you already have
#
# Last year's reminders lie in a file: who was reminded how, when, and when they came. We make one up here, in which the
# clinic decided by habit; nothing below knows how it was made.

# %%
rng = np.random.default_rng(3)
start, rows = datetime(2025, 1, 6, 9, tzinfo=UTC), []
chances = {"young": (0.08, 0.15, 0.20), "adult": (0.08, 0.30, 0.40), "old": (0.04, 0.30, 0.85)}
costs = {"letter": 1, "call": 4, "visit": 15}
for number in range(3_000):
    group = str(rng.choice(list(chances), p=[0.5, 0.3, 0.2]))
    arm = int(rng.choice(3, p=[0.6, 0.3, 0.1]))
    when = start + timedelta(minutes=29 * number)
    came = when + timedelta(days=float(rng.lognormal(np.log(4), 0.8))) if rng.random() < chances[group][arm] else None
    name = list(costs)[arm]
    rows.append({"date": when, "group": group, "reminder": name, "cost": costs[name], "came": came})
frame = pl.DataFrame(rows).with_columns(visited=pl.col("came").is_not_null().cast(pl.Int8))
frame.write_csv("reminders.csv")

log = doral.read_log(
    "reminders.csv", time="date", context="group", arm="reminder", cost="cost", answered="came", reward="visited"
)
print(log.reading.text())

# %% [markdown]
# Nobody wrote down that somebody did *not* come: feedback is silent, and that was seen. What should be done with the same
# money? A log leaves many truths possible; the plan plays several of them, and its intervals say what the log cannot tell.

# %%
plan = doral.plan(log, deadline="14d", policies=["doral-otf", "random", "oracle"], truths=8)
for sentence in plan.answer:
    print("-", sentence)

# %%
print(plan.waiting.sentence)
print(plan.earnings.of("doral-otf").sentence)

# %% [markdown]
# `plan.save("plan")` writes all of it as a page for whoever decides, with figures.
#
# Is that too good to be true? The log itself can be asked, without a simulation: whoever got a call stands for all who
# could have.

# %%
said = doral.evaluate(log, ["uniform", {"old": "visit", "adult": "call", "*": "letter"}], deadline="14d")
print(said.text())

# %% [markdown]
# ## Open a campaign
#
# In a campaign the clock counts seconds, so that a deadline of 14 days is `14 * 86_400`. `memory://` forgets everything;
# `sqlite:///reminders.db` keeps it, through crashes, too. The times here are made up (`at=`): a live system leaves them out.

# %%
live = doral.Problem(
    arms=[doral.Arm("letter", cost=1), doral.Arm("call", cost=4), doral.Arm("visit", cost=15)],
    contexts=["young", "adult", "old"],  # how many come of each is learned
    budget=900,
    horizon=600,
    deadline=14 * 86_400,
    reward_range=(0, 1),  # an answer outside of it is refused as a slip of the keyboard
)
store = doral.open("memory://")
monday = datetime(2025, 9, 1, 9, tzinfo=UTC)
campaign = store.create("reminders", live, seed=1, at=monday)
campaign

# %% [markdown]
# Somebody is due. `decide` reserves the cost and stores the decision before it returns. The same key gives the same
# decision back: after a time-out, ask again.

# %%
one = campaign.decide("old", key="patient-1", at=monday)
print(one.arm, one.cost, one.reason)
assert campaign.decide("old", key="patient-1", at=monday) == one

# %% [markdown]
# Six weeks go by. Answers are entered as they come.

# %%
under_way = []
for number in range(2, 500):
    now = monday + timedelta(minutes=120 * number)
    for due in [answer for answer in under_way if answer[0] <= now]:
        campaign.feedback(due[1], reward=due[2], at=due[0])
        under_way.remove(due)
    group = str(rng.choice(list(chances), p=[0.5, 0.3, 0.2]))
    decision = campaign.decide(group, key=f"patient-{number}", at=now)
    if decision.arm is not None:
        came = int(rng.random() < chances[group][list(costs).index(decision.arm)])
        under_way.append((now + timedelta(days=float(rng.lognormal(np.log(4), 0.8))), decision.id, came))
print(campaign.report())

# %% [markdown]
# The same as a page to look at, which needs no network: money against pace, return curves, what the arms are thought to
# bring, and the latest decisions with their reasons.

# %%
page = campaign.page("reminders.html")
latest = list(campaign.decisions())[-3:]
for decision in latest:
    print(decision.context, "-", decision.reason)

# %% [markdown]
# ## Things happen
#
# Somebody was entered wrongly; a letter was never sent; there is more money. Everything is an entry in the log, nothing is
# overwritten.

# %%
answered = next(iter(campaign.decisions(state="returned")))
campaign.correct(answered.id, reward=1 - answered.reward)
pending = next(iter(campaign.decisions(state="pending")))
campaign.cancel(pending.id)
campaign.top_up(100, key="donation-1")
campaign.top_up(100, key="donation-1")  # told twice, counted once
ledger = campaign.ledger()
print(f"{ledger.total} in all, {ledger.spent} spent, {ledger.reserved} reserved, {ledger.left} left")
print("checked against its log:", campaign.verify().n_differences, "differences")

# %% [markdown]
# ## Where to go from here
#
# - [docs/problems.md](../docs/problems.md) finds your case in a table: costs on success, control groups, silence, an end that is a date.
# - [docs/campaigns.md](../docs/campaigns.md) and [docs/operations.md](../docs/operations.md): running it for real, also from a shell.
# - [docs/plan.md](../docs/plan.md): what a plan says, and how often its intervals hold.
# - The [gallery](../docs/gallery/index.md) has more problems, each a small program.
