"""One module per benchmark; each prints a Markdown table of ratios measured in its own run."""
