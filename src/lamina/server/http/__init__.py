"""HTTP/1.1 over TLS: listener, connections, request parsing and response heads; knows no kind."""
