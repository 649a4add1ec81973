"""Translation of Caffe2 nets to ONNX graphs."""
