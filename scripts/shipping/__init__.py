"""What goes out of the door: the folder that needs no Python, npm packages, a whole release."""
