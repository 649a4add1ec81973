"""One loaded version of a model: validate, queue, execute, build responses, deliver, count."""
