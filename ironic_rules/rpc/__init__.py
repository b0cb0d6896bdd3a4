"""RPC between the API and the conductors, over oslo.messaging."""
