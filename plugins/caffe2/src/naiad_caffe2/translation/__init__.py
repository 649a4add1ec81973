"""Nets of Caffe2 as ONNX graphs."""
