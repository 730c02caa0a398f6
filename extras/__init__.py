"""Packages that add to the product; nothing in the product imports them (`ewan.extra` is their contract)."""
