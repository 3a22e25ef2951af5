"""What a service and its clients both must know: how errors and values look on the way between them."""
