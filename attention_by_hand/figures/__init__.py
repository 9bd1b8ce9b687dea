"""The figures that chapters share, and what these show."""
