"""What is published: the folder that needs no Python, npm packages, a whole release."""
