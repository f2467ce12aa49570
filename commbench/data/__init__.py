"""Tables with their source."""
