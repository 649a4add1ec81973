"""Calls from models to other models: carried over from their threads, followed, and refused where they would wait."""
