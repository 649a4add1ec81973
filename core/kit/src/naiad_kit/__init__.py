"""Shared code of plugins: protocols of services, and kits for backends and frontends."""
