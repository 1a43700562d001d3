"""The engine: plan, gather, trim, render, hash. No disk, no network, no clock."""
