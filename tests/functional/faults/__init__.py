"""Faults that occur in a data centre, with real processes.

In all cases no acknowledged data are lost, and no node remains in a transient state or locked.
"""
