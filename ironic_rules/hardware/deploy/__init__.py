"""Deploy interfaces: how an image and its configuration get onto a node."""
