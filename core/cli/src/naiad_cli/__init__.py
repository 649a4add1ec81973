"""The command `naiad`: one module per subcommand, each with `add_parser`."""
