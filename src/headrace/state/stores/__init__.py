"""The host's copies of keyed state: one interface, a module for each store behind it."""
