"""Chapter 1: averages of neighbours."""
