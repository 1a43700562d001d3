"""AI back ends behind one protocol. Knows calls and answers; knows no skill and no project."""
