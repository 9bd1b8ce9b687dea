"""What the course *Attention by Hand* brings besides its chapters: students have all of it."""
