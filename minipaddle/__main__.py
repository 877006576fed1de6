"""`python -m minipaddle draw …`: see `minipaddle.viz.command`."""

import sys

from .viz.command import main

sys.exit(main())
