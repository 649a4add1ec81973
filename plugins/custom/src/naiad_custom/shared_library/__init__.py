"""The backend `custom`: models that are shared libraries, written against `naiad_custom.h`."""
