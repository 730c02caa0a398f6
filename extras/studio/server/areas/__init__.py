"""What can be asked of each area: its endpoints, and routes of its own such as WebSockets."""
