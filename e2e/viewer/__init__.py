"""Stories of a writer who looks into the viewer, in a real browser, on a real daemon."""
