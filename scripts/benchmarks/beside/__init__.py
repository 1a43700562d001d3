"""The same work done by us and by others who fit text into a budget."""
