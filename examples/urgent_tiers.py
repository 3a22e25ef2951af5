"""Some cannot wait: what it costs the others to put the urgent first.

Who has this problem: a service in which a few arrivals matter much more than the others.
What is decided: who gets a taxi to the hospital, a bus ticket, or nothing.
What comes late: whether they arrived. Of the urgent only the first two days count, of the others three weeks.

There are two ways to say it: a weight (an urgent arrival is worth five others), or a reserve (40% of the money is
closed to the others until it is clear that the urgent cannot use it). Both draw the same line; pick a point on it.
"""

import sys

import matplotlib.pyplot as plt
import polars as pl

import doral

PER_DAY = 50  # people who ask; a round is one of them
DAYS, RUNS = 80, 10
TWO_DAYS, THREE_WEEKS = 2 * PER_DAY, 21 * PER_DAY  # deadlines, in rounds


def make_scenario(name: str, *, weight: float = 1, reserve: float = 0) -> doral.Scenario:
    """The same people and the same money."""
    problem = doral.Problem(
        arms=[doral.Arm("bus ticket", cost=3), doral.Arm("taxi", cost=20)],
        contexts=[
            doral.Context("urgent", 0.1, weight=weight, deadline=TWO_DAYS, tier=1),
            doral.Context("routine", 0.9, deadline=THREE_WEEKS),
        ],
        budget=8_000,  # dollars
        horizon=DAYS * PER_DAY,
        reserves={1: reserve} if reserve else {},  # for tier 1 and above
    )
    return doral.Scenario(
        name=name,
        problem=problem,
        means=[[0.30, 0.90], [0.45, 0.80]],  # chance to arrive at all: with the bus, with the taxi
        noise="bernoulli",
        delays={"bus ticket": doral.delays.Geometric(mean=3 * PER_DAY), "taxi": doral.delays.Geometric(mean=PER_DAY)},
    )


worlds = {
    "weight": [make_scenario(f"weight {weight}", weight=weight) for weight in (1, 3, 4, 5, 6)],
    "reserve": [make_scenario(f"reserve {share:.0%}", reserve=share) for share in (0.2, 0.4, 0.6, 0.8)],
}
result = doral.simulate("doral-otf", [*worlds["weight"], *worlds["reserve"]], runs=RUNS, keep_decisions=True)

deadline = pl.when(pl.col("context") == "urgent").then(TWO_DAYS).otherwise(THREE_WEEKS)
in_time = result.decisions().filter(pl.col("reward") > 0, pl.col("delay") <= deadline)
arrived = {}  # how many of each group
for (scenario, context), group in in_time.group_by("scenario", "context"):
    arrived[scenario, context] = group.height / RUNS

n_urgent = DAYS * PER_DAY / 10
print(f"Arrived in time, of {n_urgent:.0f} urgent and {9 * n_urgent:,.0f} other people (mean of {RUNS} runs):")
print(f"{'':<14}{'urgent':>8}{'others':>8}")
for one in (*worlds["weight"], *worlds["reserve"]):
    print(f"{one.name:<14}{arrived[one.name, 'urgent']:>8.0f}{arrived[one.name, 'routine']:>8,.0f}")

figure, axes = plt.subplots(figsize=(7.2, 4.4), layout="constrained")
looks = {"weight": ("#0072B2", "o-", (8, 2)), "reserve": ("#D55E00", "s--", (-8, -12))}
for kind, (colour, style, offset) in looks.items():
    points = [(arrived[one.name, "routine"], arrived[one.name, "urgent"]) for one in worlds[kind]]
    axes.plot(*zip(*points, strict=True), style, color=colour, linewidth=1.7, label=f"by {kind}")
    for one, point in zip(worlds[kind], points, strict=True):
        side = "left" if kind == "weight" else "right"
        axes.annotate(one.name, point, xytext=offset, textcoords="offset points", color=colour, ha=side)
axes.set(xlabel="others who arrive within three weeks", ylabel="urgent who arrive within two days")
axes.set(xlim=(0, 1_400), ylim=(0, 330))
axes.legend(frameon=False, loc="lower left")
axes.spines[["top", "right"]].set_visible(False)
figure.savefig(sys.argv[1] if len(sys.argv) > 1 else "urgent_tiers.png", dpi=100)
