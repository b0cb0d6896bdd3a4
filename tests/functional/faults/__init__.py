"""What goes wrong in a data centre, done to real processes.

In all of it nothing acknowledged is lost, and no node stays stuck or locked.
"""
