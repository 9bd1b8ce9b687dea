"""Source to notebooks, pages, bundle and paper."""
