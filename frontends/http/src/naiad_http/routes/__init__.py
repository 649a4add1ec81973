"""The routes of the protocol but for inference, as starlette endpoints."""
