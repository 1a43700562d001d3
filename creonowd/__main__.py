"""`python -m creonowd`."""

from creonowd.cli import main

raise SystemExit(main())
