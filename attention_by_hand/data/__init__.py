"""What the chapters read: dates in 14 locales, letters as fonts draw them, a manual of Python."""
