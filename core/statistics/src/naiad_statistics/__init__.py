"""Statistics of model versions: counters of requests and executions, and the reports that are made of them."""
