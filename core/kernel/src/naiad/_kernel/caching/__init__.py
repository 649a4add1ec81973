"""The response cache around the queues of models: keys, lookups, and what is counted of them."""
