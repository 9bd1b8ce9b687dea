"""What the course brings besides its chapters: students have all of it."""
