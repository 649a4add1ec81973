"""What the RPCs other than inference do, as functions from message to message that know no transport."""
