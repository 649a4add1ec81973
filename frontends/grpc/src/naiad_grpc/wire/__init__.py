"""gRPC over HTTP/2 without sockets and clocks: heads of calls, framed messages, compression, and statuses."""
