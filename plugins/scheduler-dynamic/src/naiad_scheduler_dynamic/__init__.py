"""Hook implementations of this plugin."""
