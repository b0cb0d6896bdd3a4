"""The service as its clients see it: the CLI, the SDK and the ramdisk's agent, each the real one."""
