"""A second transport, on `grpc.aio`, to compare the first with: public parts of grpcio, which is imported only here."""
