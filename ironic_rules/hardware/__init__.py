"""Hardware types and their interfaces: one folder per interface kind, one module per implementation."""
