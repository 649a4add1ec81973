"""Transport on `grpc.aio`: listening, TLS, connections, restrictions, deadlines and shutdown. All of grpcio is here."""
