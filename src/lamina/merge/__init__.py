"""What an object becomes when somebody patches or applies to it, and which fields are whose afterwards."""
