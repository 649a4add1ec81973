"""Kit for frontends of the Open Inference Protocol: tensor contents, classification, parameters, access rules."""
