"""The HTTP server of the API: connections, requests and replies, around cheroot's threads. It knows no resource."""
