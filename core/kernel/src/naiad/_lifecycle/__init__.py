"""The model repository: read configurations, detect, load, swap, drain and unload models."""
