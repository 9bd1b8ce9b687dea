"""What authors use: the beginning of an exercise, and its known answers tried."""
