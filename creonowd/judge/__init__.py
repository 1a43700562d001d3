"""Does an output keep the project's constraints and terms? Rules first, a model for the rest."""
