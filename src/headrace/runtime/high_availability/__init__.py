"""What outlives a driver: who leads, the jobs it was given, and how jobs ended."""
