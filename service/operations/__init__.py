"""What those who run the service are told of it: the state, and where it is known from."""
