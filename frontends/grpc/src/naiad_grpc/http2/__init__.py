"""HTTP/2 (RFC 9113) for a server, without sockets and clocks: bytes in, events out; calls in, bytes out."""
