"""Tensors: the datatypes of the protocol, arrays in host memory and memory of devices, exchanged by DLPack."""
