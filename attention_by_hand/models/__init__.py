"""Models that come trained."""
