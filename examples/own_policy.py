"""A policy of your own against those that ship, on the same draws.

Who has this problem: teams with an idea for a better rule, or a rule that is in use today.
What is decided: here, which of three reminders a patient gets. Your class decides; it needs two methods.
What comes late: the answer. The class below is Thompson sampling that learns as answers come and keeps an even pace.
"""

import sys

import matplotlib.pyplot as plt
import numpy as np

import doral


class PacedThompson:
    """Draws a chance for every arm from what is known, and takes the most per dollar, as long as money is on pace."""

    def __init__(self, problem: doral.Problem, seed: int) -> None:
        self.problem = problem
        self.random = np.random.default_rng(seed)
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


PER_DAY = 40  # patients
problem = doral.Problem(
    arms=[doral.Arm("letter", cost=1), doral.Arm("text", cost=0.5), doral.Arm("call", cost=3)],
    contexts={"young": 0.5, "old": 0.5},
    budget=1_500,  # dollars
    horizon=75 * PER_DAY,
    deadline=10 * PER_DAY,  # rounds: an answer counts within ten days
)
scenario = doral.Scenario(
    name="reminders",
    problem=problem,
    means=[[0.10, 0.15, 0.30], [0.25, 0.05, 0.75]],  # chance of a "yes"
    noise="bernoulli",
    delays={
        "letter": doral.delays.Lognormal(median=6 * PER_DAY, sigma=0.5),
        "text": doral.delays.Geometric(mean=1 * PER_DAY),
        "call": doral.delays.Geometric(mean=2 * PER_DAY),
    },
)

if __name__ == "__main__":
    policies = ["doral-otf", PacedThompson, "a/b", "random"]
    result = doral.simulate(policies, scenario, runs=20)
    table = result.summary().filter(metric="within_deadline")
    print("Patients who said yes within ten days (20 runs, 95% intervals):")
    for row in table.iter_rows(named=True):
        mean, low, high = (row[f"expected_difference_{end}"] for end in ("mean", "low", "high"))
        apart = "" if row["policy"] == "doral-otf" else f"; {mean:+.0f} [{low:+.0f}, {high:+.0f}] to doral-otf"
        share = f"{row['expected_share']:.0%} of the best possible"
        print(f"  {row['policy']:<14}{row['expected_mean']:>4.0f}, {share}{apart}")

    best = result.runs().filter(policy="doral-otf")["oracle"].to_numpy()
    shares = np.array([100 * result.expected("reminders", name) / best for name in result.policies])
    figure, axes = plt.subplots(figsize=(7.2, 3.8), layout="constrained")
    axes.plot(shares, color="#bbbbbb", linewidth=0.7)  # a line is a run: all policies met the same patients
    for place, (one, colour) in enumerate(zip(shares, ["#0072B2", "#D55E00", "#009E73", "#999999"], strict=True)):
        axes.plot(np.full(20, place), one, "o", color=colour, alpha=0.6)
        axes.plot([place - 0.15, place + 0.15], [one.mean()] * 2, color="black", linewidth=2)
    axes.set_xticks(range(4), result.policies)
    axes.set(ylabel="% of the best possible", xlim=(-0.5, 3.5), ylim=(None, 102))
    axes.set_title("every line is a run, every bar a mean", loc="left", fontsize="medium")
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(sys.argv[1] if len(sys.argv) > 1 else "own_policy.png", dpi=100)
