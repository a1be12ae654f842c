"""`python -m agenteval`."""

from agenteval.cli import main

raise SystemExit(main())
