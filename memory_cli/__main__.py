"""`python -m memory_cli`, for where the script `memory` is not on the path."""

from .main import main

main()
