"""The routes of the protocol except inference, as starlette endpoints."""
