"""Who may start: resources of executions, shared out among the instances of all models."""
