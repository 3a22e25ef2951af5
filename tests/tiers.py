"""Two tiers of tests: `make test` leaves out what is slow and not the core, `make test-all` runs everything.

The marker `slow` is given here and nowhere else. Of every command, page and cluster engine one test stays in the
first tier.
"""

from __future__ import annotations

from collections import Counter

# By the beginnings of their names.
SLOW = (
    "tests/browser/test_pages.py::",
    "tests/cli/test_cli.py::test_an_interrupted_reproduction_goes_on_and_ends_the_same",
    "tests/cluster/",
    "tests/engine/test_people.py::test_every_policy_stays_inside_its_arrays",
    "tests/evaluation/test_coverage.py::",
    "tests/experiments/beyond/test_experiment.py::",
    "tests/inference/test_truths.py::test_the_true_worth_of_cells_is_among_the_draws[bernoulli]",
    "tests/live/test_damaged_logs.py::test_damage_by_sql",
    "tests/live/test_killed_migrations.py::",
    "tests/live/test_postgres_pool.py::test_a_thousand_campaigns_take_the_connections_of_the_threads_that_ask",
    "tests/live/test_two_engines.py::test_taking_turns_under_kills",
    "tests/planning/test_plan.py::test_intervals_hold_what_is_truly_earned",
    "tests/release/test_release.py::test_a_newcomer_sees_what_the_start_pages_show",
    "tests/service/browser/",
    "tests/service/test_kills.py::",
    "tests/service/test_live_browser.py::",
    "tests/test_examples.py::test_an_example_prints_what_its_page_shows",
    "tests/test_notebooks.py::test_a_notebook_prints_what_it_is_committed_with",
    "tests/test_site.py::test_the_site_is_whole",
    "tests/test_studies.py::test_a_study_runs_from_end_to_end",
)
# Of these, what stays in the first tier.
SMOKE = (
    "tests/browser/test_pages.py::test_the_keyboard_hides_policies_and_sorts_tables",
    "tests/cluster/test_addresses.py::",
    "tests/cluster/test_dask.py::test_runs_stream_to_the_same_file",
    "tests/cluster/test_ray.py::test_the_same_bits_and_nothing_is_told_to_anybody",
    "tests/live/test_damaged_logs.py::test_damage_by_sql[sqlite-snapshot-chain]",
    "tests/service/browser/test_operating.py::test_an_operator_steers_a_campaign",
    "tests/service/test_kills.py::test_what_was_acknowledged_is_there_once_whenever_the_service_is_killed",
    "tests/service/test_live_browser.py::test_the_page_moves_and_leaves_its_reader_in_peace",
    "tests/test_examples.py::test_an_example_prints_what_its_page_shows[clinic_kits]",
)
# Grids, of which the first tier has one case in so many: enough for each axis to be seen. A step shares no
# divisor with the length of an inner axis.
GRIDS = {
    "tests/cli/test_campaign_batches.py::test_a_file_with_a_mistake_changes_nothing": 3,
    "tests/compiled/test_key.py::test_keys_change_with_what_code_does": 3,
    "tests/engine/test_decisions.py::test_without_a_compiler_decisions_are_the_same": 4,
    "tests/engine/test_engine_equals_twin.py::test_the_twin_wants_the_same": 10,
    "tests/engine/test_people.py::test_values_price_and_probability_follow_from_the_sums": 3,
    "tests/engine/test_policy_checks.py::test_our_policies_pass": 3,
    "tests/engine/test_state.py::test_a_stored_state_decides_alike_and_shares_nothing": 4,
    "tests/gym/test_environments.py::test_the_same_decisions_earn_what_the_simulator_says": 3,
    "tests/inference/test_pooling.py::test_intervals_hold_rates_that_come_from_effects_of_arms_and_contexts": 3,
    "tests/live/test_bad_input.py::test_every_argument_of_every_method": 3,
    "tests/live/test_export.py::test_memory_does_not_grow_with_decisions": 2,
    "tests/live/test_extreme_numbers.py::test_one_extreme_number_works_or_is_named": 3,
    "tests/live/test_forks.py::test_a_child_is_told_to_open_the_store_again": 5,
    "tests/live/test_interpreted_start.py::test_a_campaign_that_began_interpreted_equals_one_that_began_compiled": 5,
    "tests/live/test_interpreted_start.py::test_a_campaign_without_a_compiler_decides_the_same": 3,
    "tests/live/test_live_equals_simulation.py::test_reopened_before_every_event": 8,
    "tests/live/test_live_equals_simulation.py::test_restored_from_any_snapshot": 4,
    "tests/live/test_live_equals_simulation.py::test_the_campaign_decides_as_the_simulator": 3,
    "tests/live/test_people_equals_simulation.py::test_the_campaign_decides_as_the_simulator": 3,
    "tests/live/test_preview.py::test_it_says_what_the_next_decision_will_be": 4,
    "tests/live/test_watch.py::test_facts_are_the_same_after_every_step": 3,
    "tests/live/test_wrong_rewards.py::test_one_bad_answer_does_not_outweigh_what_is_not_known": 5,
    "tests/planning/test_curves.py::test_the_truth_lies_inside_the_band_in_95_of_100_logs": 3,
    "tests/test_pacing.py::test_many_contexts_after_many_changes": 5,
}


def is_slow(name: str, seen: Counter[str]) -> bool:
    """Return whether a test is of the second tier; `seen` counts the cases of grids, in the order of collection.

    >>> seen = Counter()
    >>> grid = "tests/live/test_live_equals_simulation.py::test_the_campaign_decides_as_the_simulator"
    >>> [is_slow(f"{grid}[{i}]", seen) for i in range(4)]
    [False, True, True, False]
    >>> is_slow("tests/cluster/test_dask.py::test_a_plan_is_the_same", seen)
    True
    """
    for grid, one_in in GRIDS.items():
        if name.startswith(f"{grid}["):
            seen[grid] += 1
            return seen[grid] % one_in != 1
    return name.startswith(SLOW) and not name.startswith(SMOKE)
