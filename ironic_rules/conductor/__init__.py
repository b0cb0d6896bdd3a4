"""The conductor: RPC endpoints, node locks, the state machine at work, and recovery from the death of another one."""
