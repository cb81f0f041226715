"""How a request reaches a server: over HTTP, in process, rate limited, or with injected faults."""
