"""Deployment: from deploy templates to the steps that a node runs, in their order."""
