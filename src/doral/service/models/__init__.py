"""What requests and answers look like, for those who read OpenAPI and for what checks them."""
