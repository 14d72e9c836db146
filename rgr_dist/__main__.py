"""``rgr``, and ``python -m rgr_dist`` where the code is not installed, as in a Ray job."""

import gc
import sys


def main() -> None:
    """Run ``rgr``; without the extra ``study``, say in one line how to get it (status 2)."""
    gc.set_threshold(300_000)  # a start makes many objects and drops few: 8 % of its time
    try:
        from rgr_dist.cli import main as rgr
    except ModuleNotFoundError as error:
        print(f"rgr: no {error.name}; pip install 'rgr-dist[study]'", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        print("rgr: interrupted", file=sys.stderr)
        sys.exit(130)
    rgr()


if __name__ == "__main__":
    main()
