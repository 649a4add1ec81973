"""The asyncio shell around HTTP/2 and gRPC: listening, connections, and calls on their way through the server."""
