"""The RPCs on `grpc.aio`: listening, TLS, connections, restrictions, deadlines, and the end. All of grpcio is here."""
