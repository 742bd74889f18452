"""Queries of an engine of PipelineDP, on the local backend."""

import pipeline_dp as dp

columns = dp.DataExtractors(
    privacy_id_extractor=lambda row: row[0],
    partition_extractor=lambda row: row[1],
    value_extractor=lambda row: row[2],
)


def aggregated(rows, metrics, delta=0.0, public=("a", "b"), accountant=None, **given):
    """Values by partition, in the order in which the backend gives them."""
    budget = (accountant or dp.NaiveBudgetAccountant)(total_epsilon=1.0, total_delta=delta)
    params = {"max_partitions_contributed": 1, "max_contributions_per_partition": 1}
    params |= {"metrics": list(metrics), "min_value": 0, "max_value": 5}
    engine, params = dp.DPEngine(budget, dp.LocalBackend()), dp.AggregateParams(**params | given)
    result = engine.aggregate(rows, params, columns, public)
    budget.compute_budgets()
    return [(partition, tuple(values)) for partition, values in result]


def selected(rows, strategy):
    """The partitions that may be known, by name."""
    budget = dp.NaiveBudgetAccountant(total_epsilon=1.0, total_delta=0.01)
    params = dp.SelectPartitionsParams(
        max_partitions_contributed=1,
        partition_selection_strategy=dp.PartitionSelectionStrategy[strategy],
    )
    result = dp.DPEngine(budget, dp.LocalBackend()).select_partitions(rows, params, columns)
    budget.compute_budgets()
    return sorted(result)
