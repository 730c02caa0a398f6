"""Bulk transfers with time windows: requests, the plans of a transfer service, the best that any plan could do."""
