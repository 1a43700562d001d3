"""AI back ends behind one protocol, and the judge of what they write."""
