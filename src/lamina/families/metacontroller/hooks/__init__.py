"""What hooks are sent, what their responses mean, and where they are reached."""
