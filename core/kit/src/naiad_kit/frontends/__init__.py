"""What every frontend of the Open Inference Protocol needs, whatever its wire: contents, classes, parameters, rules."""
