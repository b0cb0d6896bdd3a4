"""What extra specs of flavors and properties of images there are, which values they take, and what is wrong with those
given.

Pure: no options, no database, no request. ``check`` answers questions, ``installed`` has the registries of this
installation, ``definitions`` has what is known without plug-ins, one module for each namespace.
"""
