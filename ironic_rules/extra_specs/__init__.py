"""The extra specs of flavors and properties of images that exist, and the problems of those given.

Pure: no options, no database, no request. ``check`` answers questions, ``installed`` has the registries of this
installation, ``definitions`` has what is known without plug-ins, one module for each namespace.
"""
