"""The source of examples/researcher_first_hour.ipynb: `make notebooks` runs it and writes that."""

# %% [markdown]
# # A researcher's first hour
#
# You work on bandits, budgets or delayed feedback, and want to know what this library can do for you. In this notebook
# you play a scenario of the paper, make one of your own, take a policy apart, write a policy in 20 lines, and compare
# all of them fairly. It runs in about a minute; the first call makes machine code, once per machine.

# %%
import matplotlib.pyplot as plt
import numpy as np
import polars as pl

import doral

# %% [markdown]
# ## A scenario of the paper
#
# Ten arms, ten contexts, a budget for half of 170,000 arrivals, Pareto delays that differ from arm to arm, and a deadline of
# 500 rounds. `doral` is the paper's policy with its two stages, `doral-otf` ours, `d-linucb` a rival of the paper.
# All policies play the same draws. Three runs are enough for a first look.

# %%
result = doral.simulate(["doral-otf", "doral", "d-linucb", "random"], "paper/diverse-pareto", runs=3)
print(result)

# %%
result.plot("reward")

# %% [markdown]
# `d-linucb` spends as it comes, and has nothing left after half of the rounds. Bands are wide because every run draws new
# arms, with rewards on another level; the differences between policies, run by run, are much better known (below).
#
# `summary()` has the same as a frame (Polars; `.to_pandas()` works where pandas is installed), with three ways to count:
# answers within the deadline (go by this one), all that have come by the end, however late, and those within the age up
# to which the policy itself waits.

# %%
with pl.Config(tbl_rows=-1, tbl_hide_dataframe_shape=True):
    print(result.summary().select("policy", "metric", pl.col("reward_mean", "oracle_mean").round(), "runs"))

# %% [markdown]
# ## Who is better, and is it luck?
#
# Differences are paired, run by run. `difference` says it in a sentence, `differences()` does so for all pairs.

# %%
print(result.difference("doral-otf", "doral"))
print(result.difference("doral", "d-linucb"))

# %%
result.differences()

# %% [markdown]
# ## A scenario of your own
#
# A `Problem` is what a policy is told, a `Scenario` what is true. A round is an arrival. Means that you do not give are
# drawn anew for every run; here they are given, so that we know what should come out: for `young` the text, for `old` the
# call, and letters are a trap: they are as good as texts, but most answers to them miss the deadline.

# %%
problem = doral.Problem(
    arms=[doral.Arm("letter", cost=1), doral.Arm("text", cost=1), doral.Arm("call", cost=3)],
    contexts={"young": 0.5, "old": 0.5},
    budget=2_000,
    horizon=4_000,  # rounds
    deadline=200,  # rounds
)
mine = doral.Scenario(
    name="reminders",
    problem=problem,
    means=[[0.25, 0.25, 0.30], [0.20, 0.05, 0.75]],  # a row per context, a column per arm
    noise="bernoulli",
    delays={
        "letter": doral.delays.Pareto(minimum=120, shape=0.8),  # no mean, and half come after 285 rounds
        "text": doral.delays.Geometric(mean=30),
        "call": doral.delays.Geometric(mean=60),
    },
)
first = doral.simulate(["doral-otf", "doral", "a/b", "random"], mine, runs=20, keep_decisions=True)
print(first)

# %% [markdown]
# `decisions()` has everybody who arrived, served or not, with the probability of what was done. What did `doral-otf` learn?

# %%
log = first.decisions().filter(policy="doral-otf")
early, late = log.filter(pl.col("round") <= 1_000), log.filter(pl.col("round") > 3_000)
for name, part in [("first quarter", early), ("last quarter", late)]:
    print(name)
    for context in problem.context_names:
        group = part.filter(context=context)
        shares = [f"{arm} {group.filter(arm=arm).height / group.height:.0%}" for arm in problem.arm_names]
        nothing = f"nothing {group['arm'].null_count() / group.height:.0%}"
        print(f"  {context:<6}", ", ".join([*shares, nothing]))

# %% [markdown]
# ## Take it apart
#
# Every part of a policy is a word: `doral.policy(name, word=...)`. `help(doral.policy)` lists them all.

# %%
parts = [
    "doral-otf",
    doral.policy("doral-otf", return_probability="one", cutoff=None, label="all will answer"),
    doral.policy("doral-otf", pacing="greedy", label="no pacing"),
    doral.policy("doral-otf", sampling="thompson", label="Thompson"),
]
ablation = doral.simulate(parts, mine, runs=20)
for name in ablation.policies[1:]:
    print(ablation.difference(name, "doral-otf"))

# %%
ablation.plot("share")

# %% [markdown]
# ## A policy of your own
#
# Two methods. `decide` sees who arrives, which arms are there and can be paid, and what is left; `observe` hears an answer
# when it comes. This one is Thompson sampling per unit of cost, at an even pace.


# %%
class PacedThompson:
    def __init__(self, problem: doral.Problem, seed: int) -> None:
        self.problem, self.random = problem, np.random.default_rng(seed)
        self.yes = np.ones((problem.n_contexts, problem.n_arms))
        self.no = np.ones((problem.n_contexts, problem.n_arms))

    def decide(self, arrival: doral.Arrival) -> int | None:
        on_pace = arrival.budget_left / arrival.rounds_left >= self.problem.rate
        if not arrival.available or not on_pace:
            return None
        drawn = self.random.beta(self.yes[arrival.context], self.no[arrival.context]) / self.problem.costs
        return max(arrival.available, key=lambda arm: drawn[arm])

    def observe(self, answer: doral.Answer) -> None:
        self.yes[answer.context, answer.arm] += answer.reward
        self.no[answer.context, answer.arm] += 1 - answer.reward


own = doral.simulate(["doral-otf", PacedThompson, "a/b"], mine, runs=20)
print(own)
print(own.difference("PacedThompson", "a/b"))

# %% [markdown]
# It does not ask whether an answer came in time. Does that explain the difference? Change one line and see:


# %%
class InTime(PacedThompson):
    def observe(self, answer: doral.Answer) -> None:
        reward = answer.reward if answer.delay <= self.problem.deadline else 0.0
        self.yes[answer.context, answer.arm] += reward
        self.no[answer.context, answer.arm] += 1 - reward


own = doral.simulate(["doral-otf", PacedThompson, InTime, "a/b"], mine, runs=20)
print(own.difference("InTime", "PacedThompson"))
print(own.difference("InTime", "doral-otf"))

# %% [markdown]
# ## Keep it
#
# A result goes into one file and comes back equal to the bit; so does a scenario, as plain data.

# %%
own.save("own.doral")
again = doral.load("own.doral")
print(again == own, doral.Scenario.from_dict(mine.to_dict()) == mine)

# %% [markdown]
# ## A figure of your own
#
# Everything is a frame, so that any figure is a few lines.

# %%
figure, axes = plt.subplots(figsize=(6.4, 3.2), layout="constrained")
styles = [("#0072B2", "-"), ("#D55E00", "--"), ("#009E73", "-."), ("#000000", ":")]  # told apart by everybody
for policy, (colour, dash) in zip(own.policies, styles, strict=True):
    worth = np.sort(own.expected("reminders", policy))
    shares = np.arange(1, worth.size + 1) / worth.size
    axes.step(worth, shares, color=colour, linestyle=dash, where="post", label=policy)
axes.set(xlabel="expected reward of a run", ylabel="share of runs at or below")
axes.legend(frameon=False)
axes.spines[["top", "right"]].set_visible(False)

# %% [markdown]
# ## Where to go from here
#
# - `doral scenarios` and `doral policies` list what ships; `make reproduce` runs the paper's whole comparison.
# - [docs/beyond.md](../docs/beyond.md): what `doral-otf` is made of, and what every part is worth on 24 scenarios.
# - [docs/add_a_policy.md](../docs/add_a_policy.md): the same in compiled code, a thousand times faster.
# - [docs/paper.md](../docs/paper.md): every formula of the paper, and the function that does it.
