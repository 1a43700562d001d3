"""What a project keeps on disk or open in the editor."""
