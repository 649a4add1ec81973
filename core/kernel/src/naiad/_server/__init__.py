"""The composition root: builds a server of the installed plugins."""
