"""Installed plugins: discovery through entry points, hook calls, and what to install for an unknown name."""
