"""What authors of backends and frontends share."""
