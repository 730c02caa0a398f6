"""The areas of the interface: the endpoints of each, and routes of its own such as WebSockets."""
