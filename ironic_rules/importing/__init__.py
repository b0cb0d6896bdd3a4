"""Import of what another cloud has: an Ironic, or another one of this service.

=============  ==============================================================================
``sources``    the cloud or files, read as documents of its API
``hidden``     secrets that its API does not show
``kinds``      of each kind of object, which fields are imported, and what is stored of it
``plan``       what an import would do with each object, and why it cannot
``writing``    each object in one transaction
=============  ==============================================================================
"""
